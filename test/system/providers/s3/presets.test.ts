import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AwsV4Signer } from 'aws4fetch'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PRESET_NAMES } from '../../../../src/providers/s3/presets.ts'
import { dialLoopback } from '../../../helpers/dial-loopback.ts'
import { hasProgram, needs } from '../../../helpers/needs.ts'
import { type Played, type Player, startPlayer } from '../../../helpers/player.ts'
import { objectOf } from '../../../helpers/provider-contract.ts'
import { openLoopbackS3 } from '../../../helpers/s3-target.ts'
import { makeCertificate } from '../../../servers/certificate.ts'

const KEYS = { accessKeyId: 'KEYID', secretAccessKey: 'the secret' }
const never = () => new AbortController().signal
const KEY = 'a b/ü.png'
const PATH = 'a%20b/%C3%BC.png'

const IMG = { urlPrefix: 'https://img.example.com' }

/**
 * Options, and where the object is asked for. If they differ: the region that is signed for, which is `region` or us-east-1,
 * and the beginning of the URL, which is `urlPrefix` or the place itself.
 */
const TABLE: [options: Record<string, string>, place: string, more?: { region?: string; base?: string }][] = [
  [{ preset: 'aws', region: 'eu-central-1' }, 'pics.s3.eu-central-1.amazonaws.com/'],
  [{ region: 'cn-north-1' }, 'pics.s3.cn-north-1.amazonaws.com.cn/'],
  [{ region: 'us-east-1', bucket: 'img.example.com' }, 's3.us-east-1.amazonaws.com/img.example.com/'],
  [
    { preset: 'aliyun', region: 'cn-hangzhou' },
    'pics.s3.oss-cn-hangzhou.aliyuncs.com/',
    { base: 'https://pics.oss-cn-hangzhou.aliyuncs.com/' },
  ],
  [
    { preset: 'aliyun', region: 'cn-hangzhou-internal' },
    'pics.s3.oss-cn-hangzhou-internal.aliyuncs.com/',
    { region: 'cn-hangzhou', base: 'https://pics.oss-cn-hangzhou.aliyuncs.com/' },
  ],
  [
    { preset: 'tcyun', region: 'ap-guangzhou', bucket: 'pics-1250000000' },
    'pics-1250000000.cos.ap-guangzhou.myqcloud.com/',
  ],
  [{ preset: 'qiniu', region: 'cn-east-1', ...IMG }, 's3.cn-east-1.qiniucs.com/pics/'],
  [{ preset: 'upyun-s3', ...IMG }, 's3.api.upyun.com/pics/'],
  [{ preset: 'huawei-obs', region: 'cn-north-4' }, 'pics.obs.cn-north-4.myhuaweicloud.com/'],
  [
    { preset: 'volcengine-tos', region: 'cn-beijing' },
    'pics.tos-s3-cn-beijing.volces.com/',
    { base: 'https://pics.tos-cn-beijing.volces.com/' },
  ],
  [
    { preset: 'cloudflare-r2', accountId: '0123abc', ...IMG },
    '0123abc.r2.cloudflarestorage.com/pics/',
    { region: 'auto' },
  ],
  [
    { endpoint: '0123abc.eu.r2.cloudflarestorage.com', ...IMG },
    '0123abc.eu.r2.cloudflarestorage.com/pics/',
    { region: 'auto' },
  ],
  [{ preset: 'backblaze-b2', region: 'us-west-004' }, 'pics.s3.us-west-004.backblazeb2.com/'],
  [{ preset: 'minio', endpoint: 'https://minio.example.com:9000' }, 'minio.example.com:9000/pics/'],
  [{ preset: 'wasabi', region: 'eu-west-2' }, 'pics.s3.eu-west-2.wasabisys.com/'],
  [{ preset: 'do-spaces', region: 'fra1' }, 'pics.fra1.digitaloceanspaces.com/'],
  [{ preset: 'gcs' }, 'storage.googleapis.com/pics/', { region: 'auto' }],
  [{ preset: 'scaleway', region: 'fr-par' }, 'pics.s3.fr-par.scw.cloud/'],
  [{ preset: 'hetzner', region: 'fsn1' }, 'pics.fsn1.your-objectstorage.com/'],
  [{ preset: 'tigris', ...IMG }, 'pics.t3.storage.dev/', { region: 'auto' }],
  [{ endpoint: 't3.storage.dev', ...IMG }, 'pics.t3.storage.dev/', { region: 'auto' }],
  [{ preset: 'linode', region: 'nl-ams-1' }, 'pics.nl-ams-1.linodeobjects.com/'],
  [
    { preset: 'storj', urlPrefix: 'https://link.storjshare.io/raw/access/pics' },
    'gateway.storjshare.io/pics/',
  ],
  [{ preset: 'idrive-e2', endpoint: 'l4g4.ch11.idrivee2-2.com' }, 'l4g4.ch11.idrivee2-2.com/pics/'],
  [{ preset: 'baidu-bos', region: 'bj' }, 'pics.s3.bj.bcebos.com/', { base: 'https://pics.bj.bcebos.com/' }],
  [
    { preset: 'oracle', accountId: 'axaxnpcrorw5', region: 'eu-frankfurt-1', ...IMG },
    'axaxnpcrorw5.compat.objectstorage.eu-frankfurt-1.oraclecloud.com/pics/',
  ],
  [
    { endpoint: 'axaxnpcrorw5.compat.objectstorage.us-ashburn-1.oraclecloud.com', ...IMG },
    'axaxnpcrorw5.compat.objectstorage.us-ashburn-1.oraclecloud.com/pics/',
    { region: 'us-ashburn-1' },
  ],
  [{ preset: 'rustfs', endpoint: 'https://rustfs.example.com:9000' }, 'rustfs.example.com:9000/pics/'],
  [{ preset: 'seaweedfs', endpoint: 'https://weed.example.com:8333' }, 'weed.example.com:8333/pics/'],
  [
    { preset: 'garage', endpoint: 'garage.example.com', ...IMG },
    'garage.example.com/pics/',
    { region: 'garage' },
  ],
  [{ endpoint: 'https://store.example.com/storage/v1/s3', ...IMG }, 'store.example.com/storage/v1/s3/pics/'],
  [
    { endpoint: 'store.example.com', addressingStyle: 'virtual', urlPrefix: 'https://img.example.com/x/' },
    'pics.store.example.com/',
  ],
  [
    { preset: 'aliyun', region: 'cn-beijing', endpoint: 'oss.example.com', addressingStyle: 'cname' },
    'oss.example.com/',
  ],
  [
    { endpoint: 'https://127.0.0.1:9000', addressingStyle: 'virtual', preset: 'minio' },
    '127.0.0.1:9000/pics/',
  ],
  [{ preset: 'aws', region: 'us-east-1', bucket: 'Old_Name:x' }, 's3.us-east-1.amazonaws.com/Old_Name%3Ax/'],
  [
    { endpoint: 's3.us-west-000.backblazeb2.com' },
    'pics.s3.us-west-000.backblazeb2.com/',
    { region: 'us-west-000' },
  ],
]

/** Headers of every put; `cache-control` is sent, too, but proxies may change it. */
const SIGNED = 'content-disposition;content-length;content-type;host;x-amz-content-sha256;x-amz-date'

let player: Player
let ca: string
let home: string | undefined
beforeAll(async () => {
  if (!hasProgram('openssl')) return
  home = await mkdtemp(join(tmpdir(), 's3-presets-'))
  const hosts = TABLE.map(([, place]) => place.replace(/[:/].*/, ''))
  const names = hosts.map(host => `${isIP(host) ? 'IP' : 'DNS'}:${host}`)
  const { certFile, keyFile } = makeCertificate(home, [...new Set(names)].join(','))
  ca = await readFile(certFile, 'utf8')
  const answer = (request: Played) =>
    request.method === 'POST'
      ? {
          status: 200,
          body: '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>',
        }
      : { status: 200, headers: { etag: '"x"' } }
  player = await startPlayer(answer, { cert: ca, key: await readFile(keyFile, 'utf8') })
})
beforeEach(context => needs(context, 'openssl', 'openssl'))
afterAll(async () => {
  player?.close()
  if (home) await rm(home, { recursive: true })
})

/** Stores an object and gives the request that was sent for it. */
async function put(options: Record<string, unknown>, body = Buffer.from('a picture')) {
  const connect = dialLoopback({ port: player.port, ca })
  const target = openLoopbackS3({ bucket: 'pics', ...KEYS, ...options }, connect)
  const stored = await target.put(objectOf(KEY, body, 'image/png'), never())
  return { stored, request: player.requests.at(-1) as Played }
}

/** The signature somebody else computes over the same request. */
async function signAgain({ method, url, headers }: Played, region: string): Promise<string> {
  const signed = headers['authorization']?.match(/SignedHeaders=([^,]*)/)?.[1]?.split(';') ?? []
  const signer = new AwsV4Signer({
    ...KEYS,
    method,
    url: `https://${headers['host']}${url}`,
    headers: Object.fromEntries(signed.map(name => [name, headers[name] ?? ''])),
    service: 's3',
    region,
    datetime: headers['x-amz-date'] ?? '',
    allHeaders: true,
  })
  return signer.authHeader()
}

describe('what a preset sends', () => {
  it('is told for every preset', () => {
    const told = TABLE.map(([options]) => options['preset'])
    expect(PRESET_NAMES.filter(name => name !== 'custom' && !told.includes(name))).toEqual([])
  })

  it.each(TABLE)('%j: https://%s', async (options, place, more = {}) => {
    const { stored, request } = await put(options)
    const { region = options['region'] ?? 'us-east-1', base = options['urlPrefix'] ?? `https://${place}` } =
      more
    expect(`${request.method} ${request.headers['host']}${request.url}`).toBe(`PUT ${place}${PATH}`)
    const [scope, signed] = readAuthorization(request)
    expect(scope).toMatch(new RegExp(`^KEYID/\\d{8}/${region}/s3/aws4_request$`))
    expect(signed).toBe(SIGNED)
    expect(await signAgain(request, region)).toBe(request.headers['authorization'])
    expect(stored.url).toBe(base.replace(/\/?$/, '/') + PATH)
  })
})

function readAuthorization({ headers }: Played): string[] {
  const match = /Credential=([^,]*), SignedHeaders=([^,]*),/.exec(headers['authorization'] ?? '')
  return match?.slice(1) ?? []
}

describe('a put', () => {
  it('has a known length, the hash of the body, no checksums, no chunks and nothing that was not asked for', async () => {
    for (const body of [Buffer.alloc(0), Buffer.from('small'), Buffer.alloc(3 * 1024 * 1024, 7)]) {
      const { request } = await put({ region: 'eu-central-1' }, body)
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
    }
  })

  it('has the headers that are asked for, and signs them', async () => {
    const { request } = await put({
      region: 'eu-central-1',
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
    const signed = readAuthorization(request)[1]?.split(';') ?? []
    expect(signed.filter(name => name.startsWith('x-amz-'))).toEqual(
      Object.keys(request.headers)
        .filter(name => name.startsWith('x-amz-'))
        .sort(),
    )
    expect(await signAgain(request, 'eu-central-1')).toBe(request.headers['authorization'])
  })

  it('caches privately when its URL is signed', async () => {
    const { request } = await put({ region: 'eu-central-1', linkType: 'presigned' })
    expect(request.headers['cache-control']).toBe('private, max-age=86400')
  })

  it('puts folders in front of keys, and others into URLs', async () => {
    const options = { region: 'eu-central-1', urlSuffix: '?x-oss-process=style/small' }
    const both = await put({ ...options, path: '/img/ä/', urlPrefix: 'https://img.example.com/' })
    expect(both.request.url).toBe(`/img/%C3%A4/${PATH}`)
    expect(both.stored.url).toBe(`https://img.example.com/img/%C3%A4/${PATH}?x-oss-process=style/small`)
    const mapped = await put({ ...options, path: 'img', webPath: '', urlPrefix: 'https://img.example.com' })
    expect(mapped.request.url).toBe(`/img/${PATH}`)
    expect(mapped.stored.url).toBe(`https://img.example.com/${PATH}?x-oss-process=style/small`)
  })

  it('of a large object asks for no checksums either', async () => {
    const options = { region: 'eu-central-1', multipartThreshold: '5MB' }
    const before = player.requests.length
    await put(options, Buffer.alloc(9 * 1024 * 1024))
    const requests = player.requests.slice(before)
    expect(requests.map(({ method, url }) => `${method} ${url}`).sort()).toEqual([
      `POST /${PATH}?uploadId=u`,
      `POST /${PATH}?uploads=`,
      `PUT /${PATH}?partNumber=1&uploadId=u`,
      `PUT /${PATH}?partNumber=2&uploadId=u`,
    ])
    for (const request of requests) {
      expect(Object.keys(request.headers).join()).not.toMatch(/checksum|trailer|transfer-encoding|expect/)
      expect(request.headers['x-amz-content-sha256']).toBe(request.sha256)
      expect(await signAgain(request, 'eu-central-1')).toBe(request.headers['authorization'])
    }
  })
})
