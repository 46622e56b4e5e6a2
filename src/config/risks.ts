import { mayRepeat } from '../payload/object-key.ts'
import { type Destination, idOf } from '../uploader/delivery/destinations.ts'
import type { LoadedConfig } from './load.ts'

/** Keys with fewer characters are soon guessed. */
const SHORT_KEY = 8

/**
 * What a server would start with and its operator should know: sentences, without what is secret.
 *
 * @param opened its destinations
 */
export function findRisks(
  { settings, destinations }: LoadedConfig,
  opened: readonly Destination[],
): string[] {
  const { server, auth, keyTemplate } = settings
  const keys = [
    ...(server.key === undefined ? [] : [{ path: 'server.key', key: server.key }]),
    ...auth.keys.map(({ key }, index) => ({ path: `auth.keys[${index}].key`, key })),
  ]
  const short = keys
    .filter(({ key }) => key.length < SHORT_KEY)
    .map(
      ({ path, key }) =>
        `${path} has ${key.length} characters and is soon guessed: take 20 or more by chance.`,
    )
  const replacing = new Map(
    opened
      .filter(({ target, onConflict }) => onConflict === 'replace' && !target.namesFiles)
      .map(one => [idOf(one), one.target]),
  )
  const lossy = destinations
    .filter(one => replacing.has(idOf(one)) && mayRepeat(one.common.keyTemplate ?? keyTemplate))
    .map(one => {
      const tells = replacing.get(idOf(one))?.exists !== undefined
      const path =
        one.common.keyTemplate === undefined ? 'keyTemplate' : `providers.${one.type}.${one.name}.keyTemplate`
      return (
        `${path}: at ${idOf(one)} a file of the same name replaces the earlier one, whose link then shows ` +
        `other bytes. Add {sha256-8} to it${tells ? ', or set onConflict to "rename"' : ''}.`
      )
    })
  return [...short, ...lossy]
}
