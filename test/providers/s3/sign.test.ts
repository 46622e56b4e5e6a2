import { createHash } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatQuery, signRequest, signUrl } from '../../../src/providers/s3/sign.ts'
import { encodeKey } from '../../../src/providers/shared/public-url.ts'

/** Of all examples in Amazon's documentation. */
const EXAMPLE = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}
const NOON = new Date('2013-05-24T00:00:00Z')
const host = 'examplebucket.s3.amazonaws.com'
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

describe('signatures of the Amazon S3 API reference', () => {
  const PUT = { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' }
  it.each<[string, string, Record<string, string>, Record<string, string>, string, signature: string]>([
    ['GET', '/test.txt', {}, { range: 'bytes=0-9' }, '', 'f0e8bdb87c964420e857bd35b5d6ed31'],
    ['PUT', '/test%24file.text', {}, PUT, 'Welcome to Amazon S3.', '98ad721746da40c64f1a55b78f14c238'],
    ['GET', '/', { lifecycle: '' }, {}, '', 'fea454ca298b7da1c68078a5d1bdbfbb'],
    ['GET', '/', { prefix: 'J', 'max-keys': '2' }, {}, '', '34b48302e7b5fa45bde8084f4b7868a8'],
  ])('%s %s %j', (method, path, query, headers, body, signature) => {
    const request = { method, path, query: formatQuery(query), sha256: hashOf(body) }
    const signed = signRequest({ ...request, headers: { ...headers, host } }, 'us-east-1', EXAMPLE, NOON)
    expect(signed['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/20130524\/us-east-1\/s3\/aws4_request, SignedHeaders=/,
    )
    expect(signed['authorization']?.split('Signature=')[1]).toMatch(new RegExp(`^${signature}[\\da-f]{32}$`))
  })

  it('in a URL', () => {
    const request = { method: 'GET', path: '/test.txt', host, expiresS: 86_400 }
    expect(signUrl(request, 'us-east-1', EXAMPLE, NOON)).toBe(
      [
        'X-Amz-Algorithm=AWS4-HMAC-SHA256',
        'X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request',
        'X-Amz-Date=20130524T000000Z',
        'X-Amz-Expires=86400',
        'X-Amz-SignedHeaders=host',
        'X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
      ].join('&'),
    )
  })
})

const text = () => fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const key = () =>
  fc
    .array(
      text().filter(part => !/^\.*$|\//.test(part)),
      { minLength: 1, maxLength: 4 },
    )
    .map(parts => parts.join('/'))
const printable = () => fc.string({ unit: 'grapheme-ascii', maxLength: 12 })
const credentials = () =>
  fc.record({
    accessKeyId: fc.stringMatching(/^[A-Z0-9]{1,20}$/),
    secretAccessKey: text(),
    sessionToken: fc.option(fc.stringMatching(/^[\w+/=]{1,20}$/), { nil: undefined }),
  })
const time = () => fc.date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true })

describe('agrees with another implementation', () => {
  const region = 'eu-central-1'

  it('on headers, whatever is in key, query and values', async () => {
    const query = fc.dictionary(text(), text(), { maxKeys: 4 })
    const headers = fc.dictionary(fc.stringMatching(/^x-amz-meta-[a-z0-9-]{1,8}$/), printable(), {
      maxKeys: 4,
    })
    const property = fc.asyncProperty(
      fc.constantFrom('PUT', 'POST', 'HEAD', 'DELETE'),
      ...[key(), query, headers, credentials(), time()],
      async (method, key, query, headers, keys, now) => {
        const request = { method, path: `/b/${encodeKey(key)}`, query: formatQuery(query) }
        const all = { ...headers, host, 'cache-control': 'x', 'content-type': 'image/png' }
        const signed = signRequest({ ...request, headers: all, sha256: hashOf(key) }, region, keys, now)
        const { authorization, 'cache-control': _, ...sent } = signed
        const other = new AwsV4Signer({
          ...keys,
          method,
          url: `https://${host}${request.path}?${request.query}`,
          headers: sent,
          service: 's3',
          region,
          datetime: signed['x-amz-date'] ?? '',
          allHeaders: true,
        })
        expect(await other.authHeader()).toBe(authorization)
      },
    )
    await fc.assert(property, { numRuns: 150 })
  })

  it('on URLs', async () => {
    const expiry = fc.integer({ min: 1, max: 604_800 })
    const property = fc.asyncProperty(
      key(),
      credentials(),
      time(),
      expiry,
      async (key, keys, now, expiresS) => {
        const path = `/b/${encodeKey(key)}`
        const query = signUrl({ method: 'GET', path, host, expiresS }, region, keys, now)
        const other = new AwsV4Signer({
          ...keys,
          url: `https://${host}${path}?X-Amz-Expires=${expiresS}`,
          service: 's3',
          region,
          datetime: new URLSearchParams(query).get('X-Amz-Date') ?? '',
          signQuery: true,
        })
        const theirs = new URL((await other.sign()).url).searchParams
        expect(Object.fromEntries(new URLSearchParams(query))).toEqual(Object.fromEntries(theirs))
      },
    )
    await fc.assert(property, { numRuns: 100 })
  })
})
