import { mayRepeat } from '../payload/object-key.ts'
import { type Destination, idOf } from '../uploader/destinations.ts'
import type { LoadedConfig } from './load.ts'
import { findTokenRisks } from './tokens.ts'

/** Upload keys with fewer characters are weak. */
const SHORT_KEY = 8

/**
 * Finds weak points of a valid configuration. Returns sentences for the operator, without secrets.
 *
 * @param opened the opened destinations of the configuration
 */
export function findRisks(
  { settings, destinations }: LoadedConfig,
  opened: readonly Destination[],
): string[] {
  const { auth, keyTemplate } = settings
  const replacing = new Map(
    opened
      .filter(({ target, onConflict }) => onConflict === 'replace' && !target.traits?.namesFiles)
      .map(one => [idOf(one), one.target]),
  )
  const lossy = destinations
    .filter(one => replacing.has(idOf(one)) && mayRepeat(one.common.keyTemplate ?? keyTemplate))
    .map(one => {
      const canRename = replacing.get(idOf(one))?.exists !== undefined
      const path =
        one.common.keyTemplate === undefined ? 'keyTemplate' : `providers.${one.type}.${one.name}.keyTemplate`
      return (
        `${path}: at ${idOf(one)}, a new file replaces an existing one of the same name, whose link then leads to ` +
        `the new file. Add {sha256-8} to the key template${canRename ? ', or set onConflict to "rename"' : ''}.`
      )
    })
  return [...findShortKeys(settings), ...findTokenRisks(auth.tokens), ...lossy]
}

/** @returns a sentence for each upload key that is too short */
export function findShortKeys({ server, auth }: LoadedConfig['settings']): string[] {
  const keys = [
    ...(server.key === undefined ? [] : [{ path: 'server.key', key: server.key }]),
    ...auth.keys.map(({ key }, index) => ({ path: `auth.keys[${index}].key`, key })),
  ]
  return keys
    .filter(({ key }) => key.length < SHORT_KEY)
    .map(
      ({ path, key }) =>
        `${path} is too short (${key.length} characters). Use at least 20 random characters, for example: openssl rand -hex 24`,
    )
}
