import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sftp } from '../../src/providers/sftp/index.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { type Options, open, problemOf, put } from '../helpers/target.ts'
import { startProxy } from '../servers/proxy.ts'
import { startSsh2 } from '../servers/ssh2.ts'

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVubm9uZW5vbmVub25lbm9uZW5vbmVub25lbm9u me@example\n'
const PRIVATE_KEY = generateKeyPairSync('ed25519').privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string
const PUTTY_KEY = (version: number) =>
  `PuTTY-User-Key-File-${version}: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 2\n`

const MINIMAL = { host: 'example.com', username: 'u', password: 'p', urlPrefix: 'https://img.example.com' }

describe('options of sftp', () => {
  it.each<[string, Options, string | undefined]>([
    ['a password', {}, undefined],
    ['a key', { password: undefined, privateKey: 'k' }, undefined],
    ['an agent', { password: undefined, agent: '/run/agent' }, undefined],
    ['a key and a password', { privateKeyFile: 'k', passphrase: 'x' }, undefined],
    ['nothing', { password: undefined }, 'Set "password"'],
    ['two keys', { privateKey: 'k', privateKeyFile: 'k' }, 'not both'],
    ['a passphrase without a key', { passphrase: 'x' }, '"passphrase" needs'],
  ])('log in with %s: %j', (_, options, complaint) => {
    const said = problemOf(sftp, { ...MINIMAL, ...options })
    if (complaint === undefined) expect(said).toBeUndefined()
    else expect(said).toContain(complaint)
  })

  it.each([
    ['host', 'sftp://example.com'],
    ['host', 'example.com/www'],
    ['host', 'user@example.com'],
    ['host', ''],
    ['port', 0],
    ['port', 65_536],
    ['port', '22'],
    ['username', ''],
    ['password', ''],
    ['hostFingerprint', 'MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48'],
    ['hostFingerprint', 'SHA256:short'],
    ['hostFingerprint', []],
    ['directory', '~/www'],
    ['directory', 'a\nb'],
    ['urlPrefix', 'sftp://example.com'],
    ['urlPrefix', undefined],
    ['fileMode', '444'],
    ['fileMode', 'rw-r--r--'],
    ['directoryMode', '0655'],
  ])('refuse %s %j', (option, value) => {
    const { error } = sftp.config.safeParse({ ...MINIMAL, [option]: value })
    expect(error?.issues.map(issue => issue.path)).toEqual([[option]])
    expect(error?.issues[0]?.message).not.toBe('Invalid input')
  })
})

describe('what is no private key was refused at the first upload only', () => {
  it.each([
    [
      'a public key',
      PUBLIC_KEY,
      'It is the public key. Use the private key, whose file has the same name without',
    ],
    [
      'the characters "\\n" for line breaks',
      PRIVATE_KEY.replaceAll('\n', '\\n'),
      'It contains "\\n" as two characters.',
    ],
    ["PuTTY's format 3", PUTTY_KEY(3), 'Its PuTTY format is newer than 2. Export it with PuTTYgen'],
    ["PuTTY's format 2", PUTTY_KEY(2), undefined],
    ['a private key', PRIVATE_KEY, undefined],
  ])('%s', async (_, text, words) => {
    const path = join(await makeDirectory(), 'key')
    await writeFile(path, text)
    for (const options of [{ privateKey: text }, { privateKeyFile: path }]) {
      const [name] = Object.keys(options)
      const said = problemOf(sftp, { ...MINIMAL, ...options })
      if (words === undefined) expect(said).toBeUndefined()
      else expect(said).toContain(`"${name}" is not a usable private key. ${words}`)
    }
  })

  it('a file that is not there yet is looked at when the server connects', () => {
    expect(problemOf(sftp, { ...MINIMAL, privateKeyFile: '/no/such/file' })).toBeUndefined()
  })
})

/** Begins to store an object at a server that rejects one of the writes, counted from 0, or another request, and else says that all went well. */
async function putAt(rejected?: number | 'CLOSE' | 'RENAME') {
  let writes = 0
  const port = await startSsh2(client => {
    client.on('authentication', login => login.accept())
    client.on('session', accept =>
      accept().on('sftp', acceptSftp => {
        const session = acceptSftp()
        session.on('OPEN', id => session.handle(id, Buffer.of(0)))
        session.on('WRITE', id => session.status(id, writes++ === rejected ? 4 : 0))
        for (const name of ['CLOSE', 'RENAME', 'REMOVE'] as const)
          session.on(name, (id: number) => session.status(id, name === rejected ? 4 : 0))
        session.on('LSTAT', id => session.status(id, 2))
      }),
    )
  })
  const proxy = await startProxy([port])
  onTestFinished(proxy.close)
  const target = await open(sftp, { ...MINIMAL, host: '127.0.0.1', port: proxy.port }, { warn: () => {} })
  return { proxy, put: () => put(target, 'a.bin', Buffer.alloc(100_000)) }
}

it('a file is not reported as stored when the server rejects a write, its end or its name', async () => {
  await (await putAt()).put()
  for (const rejected of [0, 1, 3, 'CLOSE', 'RENAME'] as const)
    expect(await failureOf((await putAt(rejected)).put()), `${rejected}`).toMatchObject({
      message: expect.stringContaining('returned 4'),
    })
})

it('a server that says nothing any more is left after a while', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { proxy, put } = await putAt()
  await put()
  proxy.silence()
  const failing = failureOf(put())
  await vi.advanceTimersByTimeAsync(60_000)
  const { retryable, message, cause } = await failing
  expect(message).toContain('lost the connection')
  expect([retryable, String(cause)]).toEqual([true, 'Error: Keepalive timeout'])
})
