import { mayRepeat } from '../payload/object-key.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import type { LoadedConfig } from './load.ts'

/** Keys with fewer characters are soon guessed. */
const SHORT_KEY = 8

/** What a server would start with and its operator should know: sentences, without what is secret. */
export function findRisks({ settings, destinations }: LoadedConfig): string[] {
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
  const lossy = destinations
    .filter(({ common }) => common.onConflict === 'replace' && mayRepeat(common.keyTemplate ?? keyTemplate))
    .map(one => {
      const path =
        one.common.keyTemplate === undefined ? 'keyTemplate' : `providers.${one.type}.${one.name}.keyTemplate`
      return (
        `${path}: at ${idOf(one)} a file of the same name replaces the earlier one, whose link then shows ` +
        'other bytes. Add {sha256-8} to it, or set onConflict to "rename".'
      )
    })
  return [...short, ...lossy]
}
