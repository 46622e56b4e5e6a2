import type { LoadedConfig } from '../config/load.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { TokenAuth } from '../routes/token-access.ts'
import type { KeyCache } from '../tokens/issuer-keys.ts'
import { readKeyFile, rulesOf, type TokenRules } from '../tokens/presets.ts'
import type { KeySource } from '../tokens/verifier.ts'
import type { ServerDeps } from './open-uploader.ts'

/** The keys of issuers by where they are fetched from. A reload of the configuration keeps them. */
export type KeyCaches = Map<string, KeyCache>

/**
 * Opens `auth.tokens` of a configuration. Without it, nothing is loaded.
 *
 * @param caches gets a cache for each new issuer
 * @throws Error if a file with signing keys can't be read
 */
export async function openTokens(
  { settings }: LoadedConfig,
  { env, logger }: Pick<ServerDeps, 'env' | 'logger'>,
  caches: KeyCaches,
): Promise<TokenAuth | undefined> {
  const { tokens } = settings.auth
  if (tokens.length === 0) return undefined
  const [{ createTokenVerifier, parseKeys }, { openIssuerKeys }] = await Promise.all([
    import('../tokens/verifier.ts'),
    import('../tokens/issuer-keys.ts'),
  ])
  const outgoing = createOutgoing(settings.network, env)
  const sources = new Map<string, KeySource>()

  function openSource({ keys: place }: TokenRules): KeySource {
    // The configuration was checked, and its files with it.
    if (place.kind === 'file') return { find: parseKeys(readKeyFile(place.file)), waitS: () => 0 }
    const id = JSON.stringify(place)
    const from = place.kind === 'url' ? place.url : place.issuer
    const warn = (reason: string) =>
      logger.warn({ keysOf: from, reason }, 'Could not fetch the signing keys of tokens')
    const cache = caches.get(id) ?? {}
    caches.set(id, cache)
    const source = sources.get(id) ?? openIssuerKeys(place, outgoing, cache, warn)
    sources.set(id, source)
    return source
  }

  const entries = tokens.map(one => {
    const rules = rulesOf(one)
    return { rules, keys: openSource(rules) }
  })
  return { entries: tokens, verifier: createTokenVerifier(entries) }
}
