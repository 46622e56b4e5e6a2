import { readdirSync } from 'node:fs'
import { extname } from 'node:path'
import { FAMILIES, type Provider } from './contract.ts'

/** Of this file: `.ts` as source, `.js` when it was built. */
const EXTENSION = extname(import.meta.filename)

/** What lies in this folder beside the providers. */
const NO_PROVIDERS = ['contract', 'kit', 'registry', 'shared']

/** The module of every provider: this folder is the list of them. `smms.ts` or `smms/index.ts` exports `smms`. */
const MODULES: ReadonlyMap<string, string> = new Map(
  readdirSync(import.meta.dirname, { withFileTypes: true }).flatMap(entry => {
    // As source or built; declarations lie beside built files.
    const [, type = '', extension] = /^([a-z0-9]+)(\.[jt]s)?$/.exec(entry.name) ?? []
    if (type === '' || NO_PROVIDERS.includes(type)) return []
    return [[type, extension ? entry.name : `${type}/index${EXTENSION}`]]
  }),
)

/** Other names under which providers are known to existing clients and configurations. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['aws-s3', 's3'],
  ['aws-s3-plist', 's3'],
  ['webdavplist', 'webdav'],
  ['sftpplist', 'sftp'],
  ['lskyplist', 'lsky'],
  ['web-uploader', 'http'],
  ['advancedplist', 'http'],
])

/** Ids of all providers of this version. */
export const PROVIDER_TYPES: readonly string[] = [...MODULES.keys()].sort()

/** The provider id behind a name that may be an alias. */
export function canonicalType(name: string): string {
  return ALIASES.get(name) ?? name
}

/** Loads a provider by its id or an alias, with nothing of the others; undefined when there is none. */
export async function loadProvider(name: string): Promise<Provider | undefined> {
  const type = canonicalType(name)
  const path = MODULES.get(type)
  if (path === undefined) return undefined
  const module: Record<string, Provider> = await import(new URL(path, import.meta.url).href)
  return module[type]
}

/** Loads every provider, which takes a while, in the order in which people are told of them. */
export async function loadProviders(): Promise<Provider[]> {
  const all = (await Promise.all(PROVIDER_TYPES.map(loadProvider))).filter(provider => provider !== undefined)
  const rank = ({ about }: Provider) => FAMILIES.indexOf(about?.family ?? 'other')
  return all.sort((a, b) => rank(a) - rank(b))
}
