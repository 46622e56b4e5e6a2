import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { listen } from '../helpers/listen.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { makeCertificate } from './certificate.ts'
import { startDogeCloud } from './dogecloud.ts'
import { startEmulate } from './emulate.ts'
import type { ForgeKind } from './forge-dialects.ts'
import { startForgeReplay } from './forge-replay.ts'
import { startOpenList } from './openlist.ts'
import { startUpyun } from './upyun.ts'

const EXAMPLE = fileURLToPath(new URL('../../docs/examples/upload-server-provider-shelf', import.meta.url))
const FORGES: readonly ForgeKind[] = ['gitea', 'gitlab']
const KEYS = { accessKeyId: 'id', secretAccessKey: 'secret' }

/** Servers of destinations that all listen on 127.0.0.1, and what a configuration says of them. */
export interface FarHosts {
  readonly providers: Record<string, Record<string, object>>
  readonly plugins: readonly string[]
  /** For an S3 destination whose keys Amazon lends. */
  readonly env: Record<string, string>
  readonly ports: readonly number[]
  /** Of the host that speaks HTTPS. */
  readonly url: string
  readonly certFile: string
  /** What that host holds, by path. */
  readonly files: ReadonlyMap<string, Buffer>
  close(): Promise<void>
}

/**
 * Starts a server for each protocol over HTTP that needs no program for it.
 *
 * @param far address at which they will be reached, on the same ports
 * @param folder for a certificate of that address
 */
export async function startFarHosts(far: string, folder: string): Promise<FarHosts> {
  const { startShelf } = (await import(join(EXAMPLE, 'shelf-server.js'))) as {
    startShelf(token: string): Promise<{ port: number; close(): Promise<void> }>
  }
  const [bucket, github, upyun, openlist, dogecloud, shelf, host] = await Promise.all([
    ...([startStubBucket(), startEmulate(), startUpyun(), startOpenList()] as const),
    ...([startDogeCloud(KEYS), startShelf('token'), startHost(far, folder)] as const),
  ])
  const forges = await Promise.all(FORGES.map(kind => startForgeReplay(kind)))
  const endpoint = String(bucket.options['endpoint'])
  const away = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll('127.0.0.1', far))
  const { accessKeyId: _, secretAccessKey: __, ...lent } = bucket.options
  const { url, certFile } = host
  const curl = ['curl', '-sSf', '--cacert', certFile]
  const providers = away({
    s3: { Default: bucket.options, role: lent },
    dogecloud: {
      Default: {
        ...{ accessKey: KEYS.accessKeyId, secretKey: KEYS.secretAccessKey, bucket: 'bucket' },
        ...{ apiUrl: dogecloud.apiFor(endpoint), urlPrefix: `${endpoint}/bucket` },
      },
    },
    github: { Default: { apiUrl: github.url, repo: 'octo/img', branch: 'main', token: github.token } },
    ...Object.fromEntries(
      forges.map(({ apiUrl, token }, index) => [
        FORGES[index],
        { Default: { apiUrl, repo: 'octo/img', branch: 'main', token } },
      ]),
    ),
    upyun: {
      Default: {
        ...{ bucket: upyun.bucket, operator: upyun.operator, password: upyun.password },
        ...{ endpoint: upyun.url, urlPrefix: upyun.publicUrl },
      },
    },
    openlist: { Default: { url: openlist.url, token: openlist.token, directory: '/local' } },
    shelf: { Default: { url: `http://127.0.0.1:${shelf.port}`, token: 'token' } },
    imgur: { Default: { url: `${url}/imgur`, clientId: 'id' } },
    chevereto: { Default: { url, apiKey: 'key' } },
    piclist: { Default: { url } },
    lsky: { Default: { url, token: 'token' } },
    smms: { Default: { url: `${url}/smms`, token: 'token' } },
    imgbb: { Default: { url: `${url}/imgbb`, apiKey: 'key' } },
    catbox: { Default: { url: `${url}/catbox` } },
    aliyun: { Default: bucket.options },
    tcyun: { Default: bucket.options },
    qiniu: { Default: bucket.options },
    azure: {
      Default: {
        account: 'account',
        container: 'pictures',
        endpoint: `${url}/azure`,
        accountKey: 'a'.repeat(86),
      },
    },
    http: { Default: { url: `${url}/{key}`, method: 'PUT', body: 'raw', resultUrl: 'url' } },
    command: {
      Default: {
        command: [...curl, '-T', '-', `${url}/{key}`],
        remove: [...curl, '-X', 'DELETE', `${url}/{key}`],
        url: `${url}/{key}`,
      },
    },
  })
  return {
    ...host,
    providers,
    plugins: [join(EXAMPLE, 'index.js')],
    env: {
      ...{ AWS_ENDPOINT_URL_STS: `${url}/sts`, AWS_EC2_METADATA_DISABLED: 'true' },
      ...{ AWS_WEB_IDENTITY_TOKEN_FILE: certFile, AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/x' },
    },
    ports: [
      endpoint,
      github.url,
      ...forges.map(one => one.apiUrl),
      upyun.url,
      openlist.url,
      dogecloud.apiFor(''),
      url,
    ]
      .map(one => Number(new URL(one).port))
      .concat(shelf.port),
    async close() {
      await Promise.all([host, github, ...forges, upyun, openlist, dogecloud, shelf].map(one => one.close()))
    },
  }
}

const LENT = `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>LENT</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

/** Keeps what is put or sent as a form, answers in the words of many hosts at once, takes webhooks, and lends keys. */
async function startHost(far: string, folder: string) {
  const { certFile, keyFile } = makeCertificate(folder, `IP:${far}`)
  const files = new Map<string, Buffer>()
  let forms = 0
  const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const server = createServer(tls, async (request, response) => {
    const { method, headers } = request
    const { pathname, search } = new URL(request.url ?? '', url)
    const bytes = await buffer(request)
    response.setHeader('x-ms-request-id', 'r')
    if (method === 'GET' || method === 'HEAD') {
      const found = files.get(pathname)
      return void response.writeHead(found ? 200 : 404).end(found)
    }
    if (method === 'DELETE') return void response.writeHead(files.delete(pathname) ? 202 : 404).end()
    if (pathname.startsWith('/sts'))
      return void response.writeHead(200, { 'content-type': 'text/xml' }).end(LENT)
    if (method === 'PUT') {
      if (search === '') files.set(pathname, bytes)
      return void response.writeHead(201).end(JSON.stringify({ url: url + pathname }))
    }
    const type = headers['content-type'] ?? ''
    const isForm = type.startsWith('multipart/')
    const place = isForm ? `/form/${++forms}` : pathname
    files.set(place, isForm ? await fileIn(bytes, type) : bytes)
    const link = url + place
    if (pathname === '/catbox') return void response.end(link)
    const data = { link, deletehash: 'd', url: link, links: { url: link } }
    const answer = { success: true, status: true, status_code: 200, data, image: { url: link } }
    response.end(JSON.stringify({ ...answer, result: [link] }))
  })
  const { port, close } = await listen(server)
  const url = `https://${far}:${port}`
  return { url, certFile, files, close }
}

async function fileIn(bytes: Buffer, type: string): Promise<Buffer> {
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
  const file = [...form.values()].find(value => typeof value !== 'string') as Blob
  return Buffer.from(await file.arrayBuffer())
}
