import { FAMILIES, type Provider } from './contract.ts'

/** All providers. Each is loaded when it is needed. */
const PROVIDERS: Readonly<Record<string, () => Promise<Provider>>> = {
  aliyun: async () => (await import('./s3/vendors.ts')).aliyun,
  azure: async () => (await import('./azure/index.ts')).azure,
  catbox: async () => (await import('./catbox.ts')).catbox,
  chevereto: async () => (await import('./chevereto.ts')).chevereto,
  command: async () => (await import('./command/index.ts')).command,
  dogecloud: async () => (await import('./dogecloud.ts')).dogecloud,
  ftp: async () => (await import('./ftp/index.ts')).ftp,
  gitea: async () => (await import('./gitea.ts')).gitea,
  github: async () => (await import('./github.ts')).github,
  gitlab: async () => (await import('./gitlab.ts')).gitlab,
  http: async () => (await import('./http/index.ts')).http,
  imgbb: async () => (await import('./imgbb.ts')).imgbb,
  imgur: async () => (await import('./imgur.ts')).imgur,
  local: async () => (await import('./local/index.ts')).local,
  lsky: async () => (await import('./lsky.ts')).lsky,
  openlist: async () => (await import('./openlist.ts')).openlist,
  piclist: async () => (await import('./piclist.ts')).piclist,
  qiniu: async () => (await import('./s3/vendors.ts')).qiniu,
  s3: async () => (await import('./s3/index.ts')).s3,
  sftp: async () => (await import('./sftp/index.ts')).sftp,
  smms: async () => (await import('./smms.ts')).smms,
  tcyun: async () => (await import('./s3/vendors.ts')).tcyun,
  upyun: async () => (await import('./upyun/index.ts')).upyun,
  webdav: async () => (await import('./webdav/index.ts')).webdav,
}

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
export const PROVIDER_TYPES: readonly string[] = Object.keys(PROVIDERS).sort()

/** Returns the type of a provider for its type or an alias. */
export function canonicalType(name: string): string {
  return ALIASES.get(name) ?? name
}

/** Loads only the provider with this type or alias. Undefined if it does not exist. */
export async function loadProvider(name: string): Promise<Provider | undefined> {
  const type = canonicalType(name)
  return Object.hasOwn(PROVIDERS, type) ? PROVIDERS[type]?.() : undefined
}

/** Loads all providers, which takes some time, in the order of `init` and the README. */
export async function loadProviders(): Promise<Provider[]> {
  const all = (await Promise.all(PROVIDER_TYPES.map(loadProvider))).filter(provider => provider !== undefined)
  const rank = ({ about }: Provider) => FAMILIES.indexOf(about?.family ?? 'other')
  return all.sort((a, b) => rank(a) - rank(b))
}
