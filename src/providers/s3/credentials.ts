import { systemCode } from '../../errors.ts'
import { once } from '../../flow/once.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransient } from '../../http/network.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { importOptional } from '../../packages/optional.ts'
import { Problem } from '../../problem.ts'
import type { ProviderDeps } from '../contract.ts'
import type { S3Settings } from './settings.ts'
import type { S3Credentials } from './sign.ts'

/** @throws Problem */
export type GetCredentials = () => Promise<S3Credentials>

/** Outbound proxies for requests of temporary credentials, and the function that masks them. */
export type CredentialsDeps = Pick<ProviderDeps, 'outgoing' | 'learn'>

/**
 * Returns the credentials of the options, or else those of the environment.
 */
export function createCredentials(
  { credentials, region }: S3Settings,
  { outgoing, learn }: CredentialsDeps = {},
): GetCredentials {
  if (credentials) return async () => credentials
  const get = fromEnvironment(region, outgoing)
  return async () => {
    const found = await get()
    learn?.([found.secretAccessKey, ...(found.sessionToken ? [found.sessionToken] : [])])
    return found
  }
}

/**
 * Looks up credentials as the AWS SDK does: environment variables, files, roles of containers and machines. Temporary
 * credentials are cached, and requested again when they expire within 5 minutes.
 *
 * @param region where tokens are exchanged if the environment sets no region
 */
function fromEnvironment(region: string, outgoing: Outgoing | undefined): GetCredentials {
  const getChain = once(() => loadChain(outgoing)) // one for each destination, because it caches credentials
  return async () => {
    try {
      const find = await getChain()
      return await find({ callerClientConfig: { region: async () => region } })
    } catch (error) {
      throw explain(error)
    }
  }
}

async function loadChain(outgoing: Outgoing | undefined) {
  // The SDK would warn on Node 20 that its versions of 2027 need a newer Node.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  const name = '@aws-sdk/credential-provider-node'
  const [{ defaultProvider }, { createRequestHandler }] = await Promise.all([
    importOptional(name, () => import('@aws-sdk/credential-provider-node')),
    import('./aws-requests.ts'),
  ])
  return defaultProvider({
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    clientConfig: { requestHandler: createRequestHandler(outgoing) },
  })
}

function explain(error: unknown): Problem {
  if (error instanceof Problem) return error
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
