import { describe, expect, it } from 'vitest'
import { createGrowingMask, createMask, hideSignatures } from '../src/mask.ts'

/** Everything in it is special somewhere: in patterns, JSON, addresses, forms. */
const AWKWARD = 'p"a\\s/s w+o&r=d%?$1.*(ü)\n'

describe('a secret is masked', () => {
  it.each<[string, string, (secret: string) => string]>([
    ['as it is', 's3cr3t-k3y', secret => secret],
    ['as it is, with every special character', AWKWARD, secret => secret],
    ['inside JSON', AWKWARD, secret => JSON.stringify({ a: secret })],
    ['inside JSON that stands in JSON', AWKWARD, secret => JSON.stringify(JSON.stringify({ a: secret }))],
    ['percent-encoded', AWKWARD, secret => `/upload?key=${encodeURIComponent(secret)}&x=1`],
    ['in a form', AWKWARD, secret => `${new URLSearchParams({ key: secret })}`],
    ['in a query as URL writes it', 'a b+c/d=', secret => `${new URLSearchParams([['key', secret]])}`],
    ['more than once', 's3cr3t-k3y', secret => `${secret} and ${secret}${secret}`],
    ['behind an apostrophe', "it's-secret", secret => `'${secret}'`],
    ['with half a surrogate pair', 'half \ud83d pair', secret => `key ${secret}`],
  ])('%s', (_, secret, write) => {
    const text = `before ${write(secret)} after`
    const masked = createMask([secret])(text)
    expect(masked).toMatch(/^before .*\[secret\].* after$/s)
    expect(masked).not.toContain(secret)
    expect(masked).not.toContain(encodeURIComponent(secret.toWellFormed()))
  })

  it.each(['', 'u', 'us', 'user', 'user:', 'Bearer ', 'ä'])('in base64 behind %j', before => {
    const secret = 'a-long-upload-key'
    const encoded = Buffer.from(before + secret).toString('base64')
    const masked = createMask([secret])(`Authorization: Basic ${encoded}`)
    expect(masked).toContain('[secret]')
    const rest = masked.replace(/^.*Basic |\[secret\]/g, '')
    expect(rest.length).toBeLessThan(before.length * 2 + 10)
  })

  it('whole when another secret is a part of it', () => {
    for (const secrets of [
      ['token', 'token-and-more'],
      ['token-and-more', 'token'],
    ])
      expect(createMask(secrets)('x token-and-more y token z')).toBe('x [secret] y [secret] z')
  })

  it('without what it is replaced by being read as a pattern', () => {
    expect(createMask(['$&$1'])('a $&$1 b')).toBe('a [secret] b')
  })
})

describe('nothing else is changed', () => {
  it.each([
    ['no secret is known', [], 'text'],
    ['the secret is not in it', ['s3cr3t-k3y'], 's3cr3t k3y'],
    ['it differs in case', ['secret-key'], 'SECRET-KEY'],
    ['the secret would turn up in innocent words', ['a', 'id', 'log', ''], 'a log with an id'],
    ['a dot in the secret is a dot', ['a.b.c.d'], 'aXbXcXd'],
  ])('when %s', (_, secrets, text) => {
    expect(createMask(secrets)(text)).toBe(text)
  })
})

it('a long text with many secrets takes no time worth mentioning', () => {
  const secrets = Array.from({ length: 200 }, (_, index) => `secret-number-${index}-${'x'.repeat(40)}`)
  const mask = createMask(secrets)
  const masked = mask(`${'secret-number-'.repeat(20_000)}${secrets[7]}`)
  expect(masked.endsWith('[secret]')).toBe(true)
})

describe('what a stranger repeats of our request is hidden without the name of its header', () => {
  const base64 = Buffer.from('a signature of 32 bytes, or more!').toString('base64')
  const hex = Buffer.from('a signature of 20 b.').toString('hex')
  it.each([
    `UPYUN me:${base64}`,
    `SharedKey mine:${base64}`,
    `TOKEN id:${hex}`,
    `Basic ${Buffer.from('me:pw').toString('base64')}`,
    'Bearer 0123456789abcdef',
    `Digest username="me", response="${hex}", qop=auth`,
    `AWS id:${base64}`,
    `AWS4-HMAC-SHA256 Credential=id/x, Signature=${hex}`,
    `sha256=${hex}`,
  ])('%s', said => {
    const hidden = hideSignatures(`refused: ${said}. Go on.`)
    for (const secret of [base64, hex, 'bWU6cHc=', '0123456789abcdef']) expect(hidden).not.toContain(secret)
    expect(hidden).toContain('[hidden]')
  })

  it.each([
    'Basic authentication is wanted',
    'a bearer token is missing',
    'the token is wrong: send another',
    'AWS s3:GetBucketLocation is not allowed',
    'response: 200',
  ])('but no words: %s', said => {
    expect(hideSignatures(said)).toBe(said)
  })
})

it('a short password is no part of a longer word', () => {
  const mask = createMask(['pass'])
  expect(mask('the password "pass" passes')).toBe('the password "[secret]" passes')
})

it('raw Basic leaves no last characters of a password', () => {
  for (const password of ['a-long-password', 'a-long-password1', 'a-long-password12']) {
    const said = createMask([password])(`no: ${Buffer.from(`me:${password}`).toString('base64')}`)
    expect(said).toMatch(/\[secret\]$/)
  }
})

it('credentials of the way are masked, the latest of them', () => {
  const { mask, learn } = createGrowingMask()
  learn(['of the configuration'])
  for (let n = 0; n < 300; n++) mask.learn?.([`of session ${n}`])
  expect(mask('of the configuration, of session 299')).toBe('[secret], [secret]')
})
