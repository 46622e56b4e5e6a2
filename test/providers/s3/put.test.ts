import { AwsV4Signer } from 'aws4fetch'
import { describe, expect, it } from 'vitest'
import { dialLoopback } from '../../helpers/dial-loopback.ts'
import { type Played, play } from '../../helpers/player.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { type Options, put } from '../../helpers/target.ts'

const KEYS = { accessKeyId: 'KEYID', secretAccessKey: 'the secret' }
const REGION = 'eu-central-1'
const PATH = 'a%20b/%C3%BC.png'
const BEGUN = '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>'

/** Stores an object at a service that names the bucket in its host, and gives what was sent for it. */
async function send(options: Options, body: string | Buffer = 'a picture') {
  const { port, requests, lines } = await play(({ method }) =>
    method === 'POST' ? { status: 200, body: BEGUN } : { status: 200, headers: { etag: '"x"' } },
  )
  const place = {
    endpoint: 'http://s3.example.com',
    addressingStyle: 'virtual',
    region: REGION,
    bucket: 'pics',
  }
  const urlPrefix = 'https://img.example.com'
  const target = openLoopbackS3({ ...place, ...KEYS, urlPrefix, ...options }, dialLoopback({ port }))
  const stored = await put(target, 'a b/ü.png', body)
  const request = requests.at(-1) as Played
  expect(request.headers['host']).toBe('pics.s3.example.com')
  for (const one of requests) expect(await signAgain(one)).toBe(one.headers['authorization'])
  return { stored, request, requests, lines }
}

/** The signature somebody else computes over the same request. */
async function signAgain({ method, url, headers }: Played): Promise<string> {
  const signer = new AwsV4Signer({
    ...KEYS,
    method,
    url: `https://${headers['host']}${url}`,
    headers: Object.fromEntries(signedIn(headers).map(name => [name, headers[name] ?? ''])),
    service: 's3',
    region: REGION,
    datetime: headers['x-amz-date'] ?? '',
    allHeaders: true,
  })
  return signer.authHeader()
}

const signedIn = (headers: Played['headers']): string[] =>
  headers['authorization']?.match(/SignedHeaders=([^,]*)/)?.[1]?.split(';') ?? []

describe('a put', () => {
  it('has a known length, the hash of the body, no checksums, no chunks and nothing that was not asked for', async () => {
    for (const body of [Buffer.alloc(0), Buffer.from('small'), Buffer.alloc(3 * 1024 * 1024, 7)]) {
      const { request } = await send({}, body)
      const { authorization: _, host: __, 'x-amz-date': date, ...headers } = request.headers
      expect(date).toMatch(/^\d{8}T\d{6}Z$/)
      expect(headers).toEqual({
        'content-length': String(body.length),
        'content-type': 'image/png',
        'content-disposition': 'inline',
        'cache-control': 'public, max-age=86400',
        'x-amz-content-sha256': request.sha256,
        'user-agent': 'upload-server',
        accept: '*/*',
        'accept-encoding': 'identity',
        connection: 'keep-alive',
      })
      expect(request).toMatchObject({ size: body.length, url: `/${PATH}` })
      // `cache-control` is sent, too, but proxies may change it.
      expect(signedIn(request.headers).join(';')).toBe(
        'content-disposition;content-length;content-type;host;x-amz-content-sha256;x-amz-date',
      )
    }
  })

  it('has the headers that are asked for, and signs them', async () => {
    const { request } = await send({
      acl: 'public-read',
      storageClass: 'STANDARD_IA',
      cacheControl: 'max-age=60',
      contentDisposition: 'attachment',
      serverSideEncryption: 'aws:kms',
      sseKmsKeyId: 'key/1',
      sessionToken: 'the-token',
    })
    expect(request.headers).toMatchObject({
      'x-amz-acl': 'public-read',
      'x-amz-storage-class': 'STANDARD_IA',
      'cache-control': 'max-age=60',
      'content-disposition': 'attachment',
      'x-amz-server-side-encryption': 'aws:kms',
      'x-amz-server-side-encryption-aws-kms-key-id': 'key/1',
      'x-amz-security-token': 'the-token',
    })
    const ofAmazon = (names: string[]) => names.filter(name => name.startsWith('x-amz-')).sort()
    expect(ofAmazon(signedIn(request.headers))).toEqual(ofAmazon(Object.keys(request.headers)))
  })

  it('caches privately when its URL is signed', async () => {
    const { request } = await send({ linkType: 'presigned', urlPrefix: undefined })
    expect(request.headers['cache-control']).toBe('private, max-age=86400')
  })

  it('puts folders in front of keys, and others into URLs', async () => {
    const options = { urlSuffix: '?x-oss-process=style/small' }
    const both = await send({ ...options, path: '/img/ä/', urlPrefix: 'https://img.example.com/' })
    expect(both.request.url).toBe(`/img/%C3%A4/${PATH}`)
    expect(both.stored.url).toBe(`https://img.example.com/img/%C3%A4/${PATH}?x-oss-process=style/small`)
    const mapped = await send({ ...options, path: 'img', webPath: '', urlPrefix: 'https://img.example.com' })
    expect(mapped.request.url).toBe(`/img/${PATH}`)
    expect(mapped.stored.url).toBe(`https://img.example.com/${PATH}?x-oss-process=style/small`)
  })

  it('of a large object asks for no checksums either', async () => {
    const { requests, lines } = await send({ multipartThreshold: '5MB' }, Buffer.alloc(9 * 1024 * 1024))
    expect(lines().sort()).toEqual([
      `POST /${PATH}?uploadId=u`,
      `POST /${PATH}?uploads=`,
      `PUT /${PATH}?partNumber=1&uploadId=u`,
      `PUT /${PATH}?partNumber=2&uploadId=u`,
    ])
    for (const request of requests) {
      expect(Object.keys(request.headers).join()).not.toMatch(/checksum|trailer|transfer-encoding|expect/)
      expect(request.headers['x-amz-content-sha256']).toBe(request.sha256)
    }
  })
})
