import { readdirSync } from 'node:fs'
import { extname } from 'node:path'
import { FAMILIES, type Provider } from './contract.ts'

/** Extension of this file: `.ts` in the source, `.js` after the build. */
const EXTENSION = extname(import.meta.filename)

/** Files and folders here that are not providers. */
const NO_PROVIDERS = ['contract', 'kit', 'registry', 'shared']

/** Modules of all providers, read from this folder. `smms.ts` or `smms/index.ts` exports `smms`. */
const MODULES: ReadonlyMap<string, string> = new Map(
  readdirSync(import.meta.dirname, { withFileTypes: true }).flatMap(entry => {
    // Declaration files next to the built files do not match.
    const [, type = '', extension] = /^([a-z0-9]+)(\.[jt]s)?$/.exec(entry.name) ?? []
    if (type === '' || NO_PROVIDERS.includes(type)) return []
    return [[type, extension ? entry.name : `${type}/index${EXTENSION}`]]
  }),
)

/** Aliases of providers in existing clients and configurations. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['aws-s3', 's3'],
  ['aws-s3-plist', 's3'],
  ['webdavplist', 'webdav'],
  ['sftpplist', 'sftp'],
  ['lskyplist', 'lsky'],
  ['web-uploader', 'http'],
  ['advancedplist', 'http'],
])

/** Types of all providers of this version. */
export const PROVIDER_TYPES: readonly string[] = [...MODULES.keys()].sort()

/** Returns the type of a provider for its type or an alias. */
export function canonicalType(name: string): string {
  return ALIASES.get(name) ?? name
}

/** Loads only the provider with this type or alias. Undefined if it does not exist. */
export async function loadProvider(name: string): Promise<Provider | undefined> {
  const type = canonicalType(name)
  const path = MODULES.get(type)
  if (path === undefined) return undefined
  const module: Record<string, Provider> = await import(new URL(path, import.meta.url).href)
  return module[type]
}

/** Loads all providers, which takes some time, in the order of `init` and the README. */
export async function loadProviders(): Promise<Provider[]> {
  const all = (await Promise.all(PROVIDER_TYPES.map(loadProvider))).filter(provider => provider !== undefined)
  const rank = ({ about }: Provider) => FAMILIES.indexOf(about?.family ?? 'other')
  return all.sort((a, b) => rank(a) - rank(b))
}
