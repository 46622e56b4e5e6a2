import { systemCode } from '../../errors.ts'
import { once } from '../../flow/once.ts'
import type { HttpClient } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransient } from '../../http/network.ts'
import { importOptional } from '../../packages/optional.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import type { S3Settings } from './settings.ts'
import type { S3Credentials } from './sign.ts'

/**
 * Returns a function for the credentials of the options, or else those of the environment, which are looked up as the AWS SDK
 * does: environment variables, files, roles of containers and machines. Temporary credentials are cached, and requested
 * again when they expire within 5 minutes. It throws a Problem.
 */
export function createCredentials(
  { credentials, region }: S3Settings,
  { http, learn }: Pick<Context, 'http' | 'learn'>,
): () => Promise<S3Credentials> {
  if (credentials) return async () => credentials
  const getChain = once(() => loadChain(http)) // one for each destination, because it caches credentials
  return async () => {
    try {
      const find = await getChain()
      // Tokens are exchanged in the region of the bucket if the environment sets no region.
      const found = await find({ callerClientConfig: { region: async () => region } })
      learn?.([found.secretAccessKey, ...(found.sessionToken ? [found.sessionToken] : [])])
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
  const [{ defaultProvider }, { createRequestHandler }] = await Promise.all([
    importOptional(name, () => import('@aws-sdk/credential-provider-node')),
    import('./aws-requests.ts'),
  ])
  return defaultProvider({
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    clientConfig: { requestHandler: createRequestHandler(http) },
  })
}

function explain(error: unknown): Problem {
  if (error instanceof Problem) {
    const { why, advice, retryable, cause = error } = error
    return new Problem(`the credentials of the environment could not be loaded: ${why}`, {
      advice,
      retryable,
      cause,
    })
  }
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  // The SDK has another message for a source that exists and fails.
  if (name === 'CredentialsProviderError' && message.includes('from any providers')) {
    const advice =
      'Set "accessKeyId" and "secretAccessKey", or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.'
    return new Problem('no credentials found', { advice, cause: error })
  }
  return new Problem(`the credentials of the environment could not be loaded (${excerpt(message)})`, {
    cause: error,
    retryable: isTransient(systemCode(error)),
  })
}
