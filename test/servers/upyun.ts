import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type Listening, listen } from '../helpers/listen.ts'

const HALF_AN_HOUR_MS = 30 * 60_000
const md5 = (text: string | Buffer) => createHash('md5').update(text).digest('hex')

type Refusal = readonly [status: number, code: number, msg: string]

export interface Upyun extends Listening {
  /** Where everybody may read the files of the bucket. */
  readonly publicUrl: string
  /** Where the same files need a token, made with this key. */
  readonly guardedUrl: string
  readonly token: string
  readonly bucket: string
  readonly operator: string
  readonly password: string
}

/**
 * Does what Upyun documents of its REST API (github.com/upyun/docs: sources/api/rest_api.md, authorization.md and
 * errno.md), on 127.0.0.1. There is no real one that could be run here.
 */
export async function startUpyun(): Promise<Upyun> {
  const token = 'key of the tokens'
  const [bucket, operator, password] = ['pictures', 'operator123', 'password123 ü']
  const files = new Map<string, { type: string; bytes: Buffer }>()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    const [first, ...rest] = url.split('/').slice(1)
    const name = rest.map(decodeURIComponent).join('/')
    const bytes = await buffer(request)
    const refuseWith = ([status, code, msg]: Refusal) => {
      response.writeHead(status, { 'Content-Type': 'application/json', 'X-Error-Code': code })
      response.end(JSON.stringify({ msg, code, id: '11e4a729d24943409933a5e8314cd32e' }))
    }
    if (first === 'web') return read(response, name)
    if (first === 'guarded') return readGuarded(response, new URL(url, 'http://localhost'))
    const refusal = refuse(request, `/${first}`)
    if (refusal) return refuseWith(refusal)
    if (method === 'PUT') {
      if (headers['content-length'] === undefined)
        return refuseWith([403, 40300026, 'need content-length header'])
      if (md5(bytes) !== headers['content-md5']) return refuseWith([400, 40000006, 'content md5 not match'])
      files.set(name, { bytes, type: headers['content-type'] ?? '' })
      return void response.end()
    }
    const size = files.get(name)?.bytes.length
    if (size === undefined) return refuseWith([404, 40400001, 'file or directory not found'])
    if (method === 'DELETE') files.delete(name)
    response.writeHead(200, { 'x-upyun-file-type': 'file', 'x-upyun-file-size': size }).end()
  }

  function refuse({ method, url, headers }: IncomingMessage, path: string): Refusal | undefined {
    const { date, authorization } = headers
    if (!date) return [401, 40100001, 'need date header']
    if (Math.abs(Date.now() - Date.parse(date)) > HALF_AN_HOUR_MS) return [401, 40100002, 'date offset error']
    if (!authorization) return [401, 40100004, 'need authorization header']
    const [who, signature] = authorization.replace(/^UPYUN /, '').split(':')
    if (who !== operator) return [401, 40100006, 'user not exists']
    const text = [method, url, date, headers['content-md5'] ?? []].flat().join('&')
    if (signature !== createHmac('sha1', md5(password)).update(text).digest('base64'))
      return [401, 40100005, 'signature error']
    return path === `/${bucket}` ? undefined : [401, 40100012, 'bucket not exist']
  }

  /** "Token 防盗链" (sources/cdn/feature.md): eight digits of a hash, then the second in which it ends. */
  function readGuarded(response: ServerResponse, { pathname, searchParams }: URL): void {
    const path = decodeURIComponent(pathname)
    const [, digits, ends] = /^([0-9a-f]{8})([0-9]{10})$/.exec(searchParams.get('_upt') ?? '') ?? []
    if (digits === md5(`${token}&${ends}&${path}`).slice(12, 20) && Number(ends) * 1000 > Date.now())
      read(response, path.slice('/guarded/'.length))
    else response.writeHead(403).end()
  }

  function read(response: ServerResponse, name: string): void {
    const file = files.get(name)
    response.writeHead(file ? 200 : 404, { 'Content-Type': file?.type ?? 'text/plain' }).end(file?.bytes)
  }

  const server = await listen((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const [publicUrl, guardedUrl] = [`${server.url}/web`, `${server.url}/guarded`]
  return { ...server, publicUrl, guardedUrl, token, bucket, operator, password }
}
