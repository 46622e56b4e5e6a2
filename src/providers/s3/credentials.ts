import { Readable } from 'node:stream'
import { messageOf } from '../../errors.ts'
import { once } from '../../flow/once.ts'
import type { HttpClient } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransient } from '../../http/network.ts'
import { importOptional } from '../../packages/optional.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import { formatQuery, type S3Credentials } from './sign.ts'

/** Time limit for one request of the AWS SDK and its response. */
const TIME_LIMIT_MS = 30_000

/**
 * Returns a function for the credentials of the environment, which are looked up as the AWS SDK does: environment variables,
 * files, roles of containers and machines. The SDK caches temporary credentials, and requests them again when they expire
 * within 5 minutes. The function throws a Problem.
 *
 * @param region of the bucket, in which tokens are exchanged if the environment sets no region
 */
export function credentialsOfEnvironment(
  region: string,
  { http, learn }: Pick<Context, 'http' | 'learn'>,
): () => Promise<S3Credentials> {
  const getChain = once(() => loadChain(http)) // one for each destination, because it caches credentials
  return async () => {
    try {
      const find = await getChain()
      const found = await find({ callerClientConfig: { region: async () => region } })
      learn([found.secretAccessKey, ...(found.sessionToken ? [found.sessionToken] : [])])
      return found
    } catch (error) {
      throw explain(error)
    }
  }
}

async function loadChain(http: HttpClient) {
  // The SDK would warn on Node 20 that its versions of 2027 need a newer Node.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  const name = '@aws-sdk/credential-provider-node'
  const { defaultProvider } = await importOptional(name, () => import('@aws-sdk/credential-provider-node'))
  return defaultProvider({
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    clientConfig: { requestHandler: createRequestHandler(http) },
  })
}

/** A request in the format of the AWS SDK. */
interface SdkRequest {
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly method: string
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * Makes the AWS SDK send its requests through the connections of the destination, with its outbound proxies and CA
 * certificates. The SDK sends requests to instance metadata services without this handler.
 */
function createRequestHandler(http: HttpClient) {
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle({ protocol, hostname, port, path, query = {}, method, headers, body }: SdkRequest) {
      const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
      url.search = formatQuery(query)
      const bytes = typeof body === 'string' ? body : body && Buffer.from(body)
      const request = { method, url, headers, body: bytes, accept: () => true }
      const reply = await http.send(request, AbortSignal.timeout(TIME_LIMIT_MS))
      const answer = Readable.from([reply.bytes])
      return { response: { statusCode: reply.status, headers: reply.headers, body: answer } }
    },
  }
}

function explain(error: unknown): Problem {
  // The SDK has another message for a source that exists and fails.
  if (messageOf(error).includes('from any providers'))
    return new Problem('no credentials found', {
      advice:
        'Set "accessKeyId" and "secretAccessKey", or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
      cause: error,
    })
  const { why, advice, retryable } = error instanceof Problem ? error : problemOf(error)
  const what = `the credentials of the environment could not be loaded: ${why}`
  return new Problem(what, { advice, retryable, cause: error })
}

const problemOf = (error: unknown) =>
  new Problem(excerpt(messageOf(error)), { retryable: isTransient(error) })
