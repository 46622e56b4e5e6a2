import { createHash, createHmac } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { listen } from '../helpers/listen.ts'

const HALF_AN_HOUR_MS = 30 * 60_000

export interface Upyun {
  readonly port: number
  /** Address of the API. */
  readonly url: string
  /** Address at which everybody may read the files of the bucket. */
  readonly publicUrl: string
  /** Address at which the same files need a token, made with this key. */
  readonly guardedUrl: string
  readonly token: string
  readonly bucket: string
  readonly operator: string
  readonly password: string
  /** Types of the files that are there. */
  readonly types: ReadonlyMap<string, string>
  close(): Promise<void>
}

interface File {
  readonly type: string
  readonly path: string
}

/**
 * Does what Upyun documents of its REST API (github.com/upyun/docs: sources/api/rest_api.md, authorization.md and
 * errno.md), on 127.0.0.1. There is no real one that could be run here.
 */
export async function startUpyun(): Promise<Upyun> {
  const token = 'key of the tokens'
  const [bucket, operator, password] = ['pictures', 'operator123', 'password123 ü']
  const home = await mkdtemp(join(tmpdir(), 'upload-server-upyun-'))
  const files = new Map<string, File>()
  let uploads = 0
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const [first, ...rest] = url.split('/').slice(1)
    const name = rest.map(decodeURIComponent).join('/')
    if (first === 'web') return read(response, name)
    if (first === 'guarded') return readGuarded(response, new URL(url, 'http://localhost'))
    const refusal = refuse(request, `/${first}`)
    if (refusal) return refuseWith(request, response, refusal)
    if (method === 'PUT') return await store(request, response, name)
    if (!files.has(name)) return refuseWith(request, response, [404, 40400001, 'file or directory not found'])
    if (method === 'DELETE') files.delete(name)
    else await describe(response, name)
    response.end()
  }

  function refuse({ method, url, headers }: IncomingMessage, path: string): Refusal | undefined {
    const { date, authorization } = headers
    if (!date) return [401, 40100001, 'need date header']
    if (Math.abs(Date.now() - Date.parse(date)) > HALF_AN_HOUR_MS) return [401, 40100002, 'date offset error']
    if (!authorization) return [401, 40100004, 'need authorization header']
    const [who, signature] = authorization.replace(/^UPYUN /, '').split(':')
    if (who !== operator) return [401, 40100006, 'user not exists']
    const md5 = headers['content-md5']
    const text = [method, url, date, ...(md5 ? [md5] : [])].join('&')
    const key = createHash('md5').update(password).digest('hex')
    if (signature !== createHmac('sha1', key).update(text).digest('base64'))
      return [401, 40100005, 'signature error']
    return path === `/${bucket}` ? undefined : [401, 40100012, 'bucket not exist']
  }

  async function store(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
    if (request.headers['content-length'] === undefined)
      return refuseWith(request, response, [403, 40300026, 'need content-length header'])
    const path = join(home, String(++uploads))
    const hash = createHash('md5')
    await pipeline(
      request,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk)
          yield chunk
        }
      },
      createWriteStream(path),
    )
    if (hash.digest('hex') !== request.headers['content-md5'])
      return refuseWith(request, response, [400, 40000006, 'content md5 not match'])
    files.set(name, { path, type: request.headers['content-type'] ?? '' })
    response.end()
  }

  async function describe(response: ServerResponse, name: string): Promise<void> {
    const { size, mtimeMs } = await stat(files.get(name)?.path ?? '')
    response.setHeader('x-upyun-file-type', 'file').setHeader('x-upyun-file-size', String(size))
    response.setHeader('x-upyun-file-date', String(Math.floor(mtimeMs / 1000)))
  }

  /** "Token 防盗链" (sources/cdn/feature.md): eight digits of a hash, then the second in which it ends. */
  function readGuarded(response: ServerResponse, { pathname, searchParams }: URL): void {
    const path = decodeURIComponent(pathname)
    const [, digits, ends] = /^([0-9a-f]{8})([0-9]{10})$/.exec(searchParams.get('_upt') ?? '') ?? []
    const hash = createHash('md5').update(`${token}&${ends}&${path}`).digest('hex')
    if (digits === hash.slice(12, 20) && Number(ends) * 1000 > Date.now())
      read(response, path.slice('/guarded/'.length))
    else response.writeHead(403).end()
  }

  function read(response: ServerResponse, name: string): void {
    const file = files.get(name)
    if (file) createReadStream(file.path).pipe(response.setHeader('Content-Type', file.type))
    else response.writeHead(404).end()
  }

  const { port, url, close } = await listen(server)
  return {
    port,
    url,
    publicUrl: `${url}/web`,
    guardedUrl: `${url}/guarded`,
    token,
    bucket,
    operator,
    password,
    get types() {
      return new Map([...files].map(([name, { type }]) => [name, type]))
    },
    async close() {
      await close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

type Refusal = readonly [status: number, code: number, msg: string]

function refuseWith(request: IncomingMessage, response: ServerResponse, [status, code, msg]: Refusal): void {
  request.resume()
  response.writeHead(status, { 'Content-Type': 'application/json', 'X-Error-Code': code })
  response.end(JSON.stringify({ msg, code, id: '11e4a729d24943409933a5e8314cd32e' }))
}
