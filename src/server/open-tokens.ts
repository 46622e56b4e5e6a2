import type { LoadedConfig } from '../config/load.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { TokenAuth } from '../routes/token-access.ts'
import type { KeyCache } from '../tokens/key-cache.ts'
import { rulesOf, type TokenRules } from '../tokens/presets.ts'
import type { KeySet, KeySource } from '../tokens/verifier.ts'
import type { ServerDeps } from './open-uploader.ts'

/** The keys of issuers by where they are fetched from. A reload of the configuration keeps them. */
export type KeyCaches = Map<string, KeyCache<KeySet>>

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
  const [{ createTokenVerifier, parseKeys }, { createKeyCache }, { fetchKeys, readKeyFile }] =
    await Promise.all([
      import('../tokens/verifier.ts'),
      import('../tokens/key-cache.ts'),
      import('../tokens/fetch-keys.ts'),
    ])
  const outgoing = createOutgoing(settings.network, env)

  async function openSource({ keys: place, name }: TokenRules): Promise<KeySource> {
    if (place.kind === 'file') {
      const keys = parseKeys(
        await readKeyFile(place.file).catch((error: Error) => {
          throw new Error(`jwksFile of the tokens "${name}" ${error.message}`)
        }),
      )
      return { current: async () => keys, newerThan: async () => undefined }
    }
    const id = JSON.stringify(place)
    const from = place.kind === 'url' ? place.url : place.issuer
    const warn = (reason: string) =>
      logger.warn({ keysOf: from, reason }, 'Could not fetch the signing keys of tokens')
    const cache = caches.get(id) ?? createKeyCache<KeySet>(warn)
    caches.set(id, cache)
    const load = async () => parseKeys(await fetchKeys(place, outgoing))
    return { current: () => cache.current(load), newerThan: known => cache.newerThan(known, load) }
  }

  const entries = await Promise.all(
    tokens.map(async one => {
      const rules = rulesOf(one)
      return { rules, keys: await openSource(rules) }
    }),
  )
  return { entries: tokens, verifier: createTokenVerifier(entries) }
}
