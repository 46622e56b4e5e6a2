import { systemCode, UploadError } from '../../errors.ts'
import { once } from '../../flow/once.ts'
import { excerpt } from '../../http/client.ts'
import { isPassing } from '../../http/network.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { importOptional } from '../../packages/optional.ts'
import type { ProviderDeps } from '../contract.ts'
import type { S3Settings } from './settings.ts'
import type { S3Credentials } from './sign.ts'

/** @throws UploadError `delivery_failed`, whose message is the end of a sentence */
export type GetCredentials = () => Promise<S3Credentials>

/** Through which proxies Amazon is asked for temporary ones, and who has them masked. */
export type CredentialsDeps = Pick<ProviderDeps, 'outgoing' | 'learn'>

/**
 * Those of the options, or else of the environment.
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
 * Looks where AWS looks: environment variables, its files, the roles of containers and machines. Temporary credentials
 * are kept, and fetched anew when they end within five minutes.
 *
 * @param region where tokens are exchanged when the environment names none
 */
function fromEnvironment(region: string, outgoing: Outgoing | undefined): GetCredentials {
  const getChain = once(() => loadChain(outgoing)) // of its own, since it keeps what it found
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
  // It would tell everybody on Node 20 that its versions of 2027 will not run there.
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

function explain(error: unknown): UploadError {
  if (error instanceof UploadError) return error
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  // Of a source that was found and fails the library has other words.
  if (name === 'CredentialsProviderError' && message.includes('from any providers')) {
    const advice =
      'Set "accessKeyId" and "secretAccessKey", or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
    return new UploadError('delivery_failed', `no credentials found. ${advice}`, { cause: error })
  }
  const reason = `the credentials of the environment could not be loaded (${excerpt(message)})`
  return new UploadError('delivery_failed', reason, { cause: error, retryable: isPassing(systemCode(error)) })
}
