import { describe, expect, it } from 'vitest'
import { chooseDigest, parseChallenges } from '../../../src/providers/webdav/digest.ts'
import { createLogin } from '../../../src/providers/webdav/login.ts'

/** The example of RFC 7616, section 3.9.1. */
const EXAMPLE = {
  login: { username: 'Mufasa', password: 'Circle of Life' },
  cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  challenge: (algorithm: string) =>
    `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, ` +
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"',
}

function answerOf(header: string, login: { username: string; password: string }, cnonce?: string) {
  return chooseDigest(parseChallenges(header), login, cnonce)?.answer('GET', '/dir/index.html')
}

describe('a challenge', () => {
  it.each([
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
  ])('with %s is answered as in RFC 7616', (algorithm, response) => {
    expect(answerOf(EXAMPLE.challenge(algorithm), EXAMPLE.login, EXAMPLE.cnonce)).toBe(
      'Digest username="Mufasa", realm="http-auth@example.org", ' +
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", ' +
        `response="${response}", algorithm=${algorithm}, ` +
        'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", ' +
        `cnonce="${EXAMPLE.cnonce}", qop=auth, nc=00000001`,
    )
  })

  it('counts what it answers', () => {
    const digest = chooseDigest(parseChallenges(EXAMPLE.challenge('MD5')), EXAMPLE.login)
    const answers = Array.from({ length: 17 }, () => digest?.answer('GET', '/') ?? '')
    expect(answers.map(answer => /nc=(\w+)/.exec(answer)?.[1])).toEqual(
      Array.from({ length: 17 }, (_, i) => (i + 1).toString(16).padStart(8, '0')),
    )
    expect(new Set(answers.map(answer => /response="(\w+)"/.exec(answer)?.[1]))).toHaveProperty('size', 17)
  })

  it('of the strongest hash is taken from several in one header', () => {
    const header = `Basic realm="a, b=\\"c\\"", ${EXAMPLE.challenge('MD5')}, ${EXAMPLE.challenge('SHA-256')}`
    expect(parseChallenges(header).map(({ scheme }) => scheme)).toEqual(['basic', 'digest', 'digest'])
    expect(parseChallenges(header)[0]?.parameters.get('realm')).toBe('a, b="c"')
    expect(answerOf(header, EXAMPLE.login)).toContain('algorithm=SHA-256')
  })

  it.each([
    '',
    'Basic realm="x"',
    'Negotiate',
    'Digest realm="x"',
    'Digest realm="x", nonce="n", algorithm=SHA3',
    'Digest realm="x", nonce="n", qop="auth-int"',
    ', , =,"',
  ])('that cannot be answered is left alone: %s', header => {
    expect(chooseDigest(parseChallenges(header), EXAMPLE.login)).toBeUndefined()
  })
})

describe('a login by Digest', () => {
  const make = () => createLogin({ username: 'me', password: 'secret', authType: 'digest' })
  const challenge = (nonce: string, more = '') => `Digest realm="r", nonce="${nonce}", qop="auth"${more}`

  it('tries once when the server refuses it', () => {
    const login = make()
    expect(login.isUnknown).toBe(true)
    expect(login.authorize('PUT', '/')).toBeUndefined()
    expect(login.handleChallenges(challenge('1'), undefined)).toBe(true)
    expect(login.isUnknown).toBe(false)
    expect(login.handleChallenges(challenge('2'), login.authorize('PUT', '/'))).toBe(false)
  })

  it.each([
    ['the server says so', ', stale=true', 1],
    ['it had been used before', '', 2],
  ])('tries again with a new nonce when %s', (_, more, uses) => {
    const login = make()
    login.handleChallenges(challenge('1'), undefined)
    let sent: string | undefined
    for (let use = 0; use < uses; use++) sent = login.authorize('PUT', '/')
    expect(login.handleChallenges(challenge('2', more), sent)).toBe(true)
    expect(login.authorize('PUT', '/')).toContain('nonce="2"')
  })

  it('tries again when another request has got a new nonce meanwhile', () => {
    const login = make()
    login.handleChallenges(challenge('1'), undefined)
    const sent = login.authorize('PUT', '/')
    login.handleChallenges(challenge('2'), undefined)
    expect(login.handleChallenges(challenge('3'), sent)).toBe(true)
  })

  it.each([
    ['digest', 'Basic realm="x"', 'Set "authType" to "basic"'],
    ['basic', challenge('1'), 'Set "authType" to "digest"'],
    ['basic', `Basic realm="x", ${challenge('1')}`, 'Check "username" and "password"'],
    ['digest', '', 'Check "username" and "password"'],
  ] as const)('explains a refusal of %s by %s', (authType, header, words) => {
    expect(createLogin({ username: 'me', password: 'secret', authType }).explain(header).advice).toContain(
      words,
    )
  })
})
