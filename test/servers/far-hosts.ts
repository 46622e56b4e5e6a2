import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { listen } from '../helpers/listen.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { makeCertificate } from './certificate.ts'

const EXAMPLE = fileURLToPath(new URL('../../docs/examples/upload-server-provider-shelf', import.meta.url))

/**
 * Starts a server for each way in which a destination opens connections, but for those that need a program:
 * `test/rooms.test.ts` proves that there is no other one.
 *
 * @param far address at which they will be reached, on the same ports
 * @param folder for a certificate of that address
 */
export async function startFarHosts(far: string, folder: string) {
  const { startShelf } = (await import(join(EXAMPLE, 'shelf-server.js'))) as {
    startShelf(token: string): Promise<{ port: number; close(): Promise<void> }>
  }
  const [bucket, shelf, host] = await Promise.all([
    startStubBucket(),
    startShelf('token'),
    startHost(far, folder),
  ])
  const endpoint = String(bucket.options['endpoint'])
  const away = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll('127.0.0.1', far))
  const { accessKeyId: _, secretAccessKey: __, ...lent } = bucket.options
  const { url, certFile } = host
  const curl = (options: string) => [
    'sh',
    '-c',
    `curl -sSf --cacert ${certFile} ${options} "${url}/$UPLOAD_OBJECT_KEY"`,
  ]
  const azure = { account: 'account', container: 'pictures', accountKey: 'a'.repeat(86) }
  const providers: Record<string, Record<string, object>> = away({
    s3: { Default: bucket.options, role: lent },
    shelf: { Default: { url: `http://127.0.0.1:${shelf.port}`, token: 'token' } },
    imgur: { Default: { url: `${url}/imgur`, clientId: 'id' } },
    azure: { Default: { ...azure, endpoint: `${url}/azure` } },
    http: { Default: { url: `${url}/{key}`, method: 'PUT', body: 'raw', resultUrl: 'url' } },
    command: {
      Default: {
        command: curl('-T -'),
        remove: curl('-X DELETE'),
        url: `${url}/{key}`,
      },
    },
  })
  return {
    ...host,
    providers,
    plugins: [join(EXAMPLE, 'index.js')],
    /** For an S3 destination whose keys Amazon lends. */
    env: {
      ...{ AWS_ENDPOINT_URL_STS: `${url}/sts`, AWS_EC2_METADATA_DISABLED: 'true' },
      ...{ AWS_WEB_IDENTITY_TOKEN_FILE: certFile, AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/x' },
    },
    ports: [endpoint, url].map(one => Number(new URL(one).port)).concat(shelf.port),
    async close() {
      await Promise.all([host.close(), shelf.close()])
    },
  }
}

const LENT = `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>LENT</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

/** Keeps what is put or sent as a form, answers as Imgur and this server do, takes webhooks, and lends keys. */
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
    const data = { link, deletehash: 'd' }
    response.end(JSON.stringify({ success: true, status: 200, data, result: [link] }))
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
