import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { UploadError } from '../../errors.ts'
import { readBody, streamBody } from '../body.ts'
import type { HttpClient, HttpReply } from '../http.ts'
import type { UploadObject } from '../provider.ts'
import { encodeKey } from '../public-url.ts'
import { type Operator, signRequest } from './sign.ts'

/** Codes of Upyun's list of API errors. */
const BUCKET_IS_FULL = 40300004
const NOT_FOUND = 40400001
const HINTS: Readonly<Record<number, string>> = {
  40100002: 'Set the clock of this machine.',
  40100005: 'Check "operator" and "password".',
  40100006: 'Check "operator".',
  40100008: 'Let the operator into the bucket.',
  40100009: 'Check "password".',
  40100012: 'Check "bucket".',
  40300015: 'A folder of that name is in the way.',
}

/** The files of one bucket. */
export interface Bucket {
  put(object: UploadObject, signal: AbortSignal): Promise<void>
  exists(key: string, signal: AbortSignal): Promise<boolean>
  remove(key: string, signal: AbortSignal): Promise<void>
  /** Asks for a file that is not there. */
  probe(name: string, signal: AbortSignal): Promise<void>
}

/** @param address of the bucket, without a slash at its end */
export function createBucket(address: string, operator: Operator, client: HttpClient): Bucket {
  async function send(
    method: 'GET' | 'HEAD' | 'PUT' | 'DELETE',
    key: string,
    accept: readonly number[],
    signal: AbortSignal,
    content?: { headers: Record<string, string>; bodyMd5: string; body: (signal: AbortSignal) => Readable },
  ): Promise<HttpReply> {
    const url = new URL(`${address}/${encodeKey(key)}`)
    const date = new Date().toUTCString()
    const { headers, bodyMd5, body } = content ?? {}
    const Authorization = signRequest(operator, { method, path: url.pathname, date, bodyMd5 })
    let code: number | undefined
    try {
      return await client.send(
        {
          method,
          url,
          headers: { ...headers, Date: date, Authorization },
          ...(body && { body }),
          accept: status => accept.includes(status),
          explain(refusal) {
            code = codeOf(refusal)
            return code === undefined ? undefined : explain(refusal, code)
          },
        },
        signal,
      )
    } catch (error) {
      if (code !== BUCKET_IS_FULL || !(error instanceof UploadError)) throw error
      throw new UploadError('insufficient_storage', error.message, { cause: error })
    }
  }

  return {
    async put(object, signal) {
      const bodyMd5 = await hashBody(object, signal)
      const headers = {
        'Content-Type': object.contentType,
        'Content-Length': String(object.size),
        'Content-MD5': bodyMd5,
      }
      const body = (ending: AbortSignal) => streamBody(object, ending)
      await send('PUT', object.key, [200], signal, { headers, bodyMd5, body })
    },
    async exists(key, signal) {
      return (await send('HEAD', key, [200, 404], signal)).status === 200
    },
    async remove(key, signal) {
      await send('DELETE', key, [200, 404], signal)
    },
    async probe(name, signal) {
      const reply = await send('GET', name, [404], signal)
      if (codeOf(reply) === NOT_FOUND) return
      const message = `${new URL(address).host} answered 404, but not as Upyun does. Check "endpoint".`
      throw new UploadError('delivery_failed', message)
    },
  }
}

async function hashBody(object: UploadObject, signal: AbortSignal): Promise<string> {
  const hash = createHash('md5')
  for await (const chunk of readBody(object, signal)) hash.update(chunk)
  return hash.digest('hex')
}

/** Of `{"code":40400001,"msg":"…","id":"…"}`, or of the header that does for it where there is no body. */
function codeOf({ headers, text }: HttpReply): number | undefined {
  const code = headers['x-error-code'] ?? /"code"\s*:\s*(\d+)/.exec(text)?.[1]
  return code === undefined ? undefined : Number(code)
}

function explain({ text }: HttpReply, code: number): string {
  const said = /"msg"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? 'refused'
  return [`${said} (${code}).`, HINTS[code]].filter(Boolean).join(' ')
}
