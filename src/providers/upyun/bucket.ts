import { hashOf } from '../../body.ts'
import type { HttpClient, HttpReply, Refusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { type Causes, causeOf, FULL } from '../shared/causes.ts'
import { createPathQueue } from '../shared/path-queue.ts'
import { encodeKey } from '../shared/public-url.ts'
import { type Operator, signRequest } from './sign.ts'

const NOT_FOUND = 40400001
/** Causes by error code of Upyun's API documentation. */
const CAUSES: Causes = {
  40100002: { advice: 'Set the clock of this machine.' },
  40100005: { advice: 'Check "operator" and "password".' },
  40100006: { advice: 'Check "operator".' },
  40100008: { advice: 'Give the operator access to the bucket.' },
  40100009: { advice: 'Check "password".' },
  40100012: { advice: 'Check "bucket".' },
  40300004: FULL,
  40300015: { advice: 'A folder with this name already exists. Use another object key, or remove it.' },
}

/**
 * The files of one bucket.
 *
 * @param bucketUrl without a slash at the end
 */
export function createBucket(bucketUrl: string, operator: Operator, client: HttpClient) {
  const { host } = new URL(bucketUrl)
  const runInOrder = createPathQueue()

  async function send(
    method: 'GET' | 'HEAD' | 'PUT' | 'DELETE',
    key: string,
    accept: readonly number[],
    signal: AbortSignal,
    body?: UploadObject,
  ): Promise<HttpReply> {
    const url = new URL(`${bucketUrl}/${encodeKey(key)}`)
    const bodyMd5 = body && (await hashOf(body, 'md5', signal))
    const date = new Date().toUTCString()
    const headers = {
      ...(body && { 'Content-Type': body.contentType }),
      ...(bodyMd5 && { 'Content-MD5': bodyMd5 }),
      Date: date,
      Authorization: signRequest(operator, { method, path: url.pathname, date, bodyMd5 }),
    }
    const isAccepted = (status: number) => accept.includes(status)
    return client.send({ method, url, headers, body, accept: isAccepted, explain }, signal)
  }

  /** Looks up a file. Responses to PUT and DELETE are empty, so any server could send them. Responses to HEAD have Upyun's headers. */
  async function find(key: string, signal: AbortSignal): Promise<{ size: number } | undefined> {
    const { status, headers } = await send('HEAD', key, [200, 404], signal)
    if (status === 404) return undefined
    if (headers['x-upyun-file-type'] === undefined) throw notUpyun(status)
    return { size: Number(headers['x-upyun-file-size']) }
  }

  function notUpyun(status: number): Problem {
    return new Problem(`${host} returned ${status}, but not a response of Upyun`, {
      advice: 'Check "endpoint".',
    })
  }

  function notConfirmed(what: string): Problem {
    return new Problem(`${host} reported that it ${what} the file, but it did not`, { retryable: true })
  }

  return {
    put: (object: UploadObject, signal: AbortSignal) =>
      runInOrder(object.key, async () => {
        signal.throwIfAborted()
        await send('PUT', object.key, [200], signal, object)
        if ((await find(object.key, signal))?.size !== object.size) throw notConfirmed('stored')
      }),
    exists: async (key: string, signal: AbortSignal) => (await find(key, signal)) !== undefined,
    async remove(key: string, signal: AbortSignal) {
      await send('DELETE', key, [200, 404], signal)
      if (await find(key, signal)) throw notConfirmed('removed')
    },
    /** Checks the credentials with a request for a missing file. */
    async probe(name: string, signal: AbortSignal) {
      const reply = await send('GET', name, [404], signal)
      if (codeOf(reply) !== NOT_FOUND) throw notUpyun(404)
    },
  }
}

/** Returns the code of `{"code":40400001,"msg":"…","id":"…"}`, or of the header if the response has no body. */
function codeOf({ headers, text }: HttpReply): number | undefined {
  const code = headers['x-error-code'] ?? /"code"\s*:\s*(\d+)/.exec(text)?.[1]
  return code === undefined ? undefined : Number(code)
}

function explain(refusal: HttpReply): Refusal | undefined {
  const code = codeOf(refusal)
  if (code === undefined) return undefined
  const message = /"msg"\s*:\s*"([^"]*)"/.exec(refusal.text)?.[1] ?? 'rejected'
  return { reason: `${message} (${code})`, ...causeOf(CAUSES, code) }
}
