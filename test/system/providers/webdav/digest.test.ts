import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { chooseDigest, parseChallenges } from '../../../../src/providers/webdav/digest.ts'
import { needs } from '../../../helpers/needs.ts'
import { play } from '../../../helpers/player.ts'

const run = promisify(execFile)

function answerOf(header: string, login: { username: string; password: string }, cnonce?: string) {
  return chooseDigest(parseChallenges(header), login, cnonce)?.answer('GET', '/dir/index.html')
}

describe('a challenge', () => {
  // No SHA-512-256: the curl of Debian 12 does not know it.
  it.for([
    'algorithm=MD5, qop="auth"',
    'algorithm=MD5-sess, qop="auth"',
    'algorithm=SHA-256, qop="auth"',
    'algorithm=SHA-256-SESS, qop="auth"',
    'qop="auth,auth-int", opaque=""',
    'algorithm=MD5',
    '',
  ])('is answered as by curl: %s', async (variant, context) => {
    needs(context, 'curl', 'curl')
    const header = ['Digest realm="all \\"files\\""', 'nonce="a1/+="', variant].filter(Boolean).join(', ')
    const { url, requests } = await play(({ headers }) =>
      headers['authorization'] ? { status: 200 } : { status: 401, headers: { 'WWW-Authenticate': header } },
    )
    const login = { username: 'jane "x"', password: 'pa:ss' }
    await run('curl', [
      '-sS',
      '--digest',
      '-u',
      `${login.username}:${login.password}`,
      `${url}/dir/index.html`,
    ])
    const theirs = requests[1]?.headers['authorization'] ?? ''
    const ours = answerOf(header, login, /cnonce="([^"]*)"/.exec(theirs)?.[1]) ?? ''
    expect(sorted(ours)).toEqual(sorted(theirs))
  })
})

/** curl writes its parameters in another order, and quotes others. */
function sorted(authorization: string): string[] {
  return authorization
    .replace(/^Digest /, '')
    .split(', ')
    .map(parameter => parameter.replace(/^(\w+)="?(.*?)"?$/, '$1=$2'))
    .sort()
}
