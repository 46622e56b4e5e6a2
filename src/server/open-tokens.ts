import type { LoadedConfig } from '../config/load.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { TokenAuth } from '../routes/token-access.ts'
import { rulesOf } from '../tokens/presets.ts'
import type { ServerDeps } from './open-uploader.ts'

/**
 * Opens `auth.tokens` of a configuration. Without it, nothing is loaded.
 *
 * @throws Error if a file with signing keys can't be read
 */
export async function openTokens(
  { settings }: LoadedConfig,
  { env, logger }: Pick<ServerDeps, 'env' | 'logger'>,
): Promise<TokenAuth | undefined> {
  const { tokens } = settings.auth
  if (tokens.length === 0) return undefined
  const [{ createTokenVerifier }, { openIssuerKeys }] = await Promise.all([
    import('../tokens/verifier.ts'),
    import('../tokens/issuer-keys.ts'),
  ])
  const outgoing = createOutgoing(settings.network, env)
  const opened = new Map<string, ReturnType<typeof openIssuerKeys>>()
  const entries = tokens.map(one => {
    const rules = rulesOf(one)
    const { kind, at } = rules.keys
    const warn = (reason: string) =>
      logger.warn({ keysOf: at, reason }, 'Could not fetch the signing keys of tokens')
    const keys = opened.get(kind + at) ?? openIssuerKeys(rules.keys, outgoing, warn)
    opened.set(kind + at, keys)
    return { rules, keys }
  })
  return { entries: tokens, verifier: createTokenVerifier(entries) }
}
