import type { Provider } from './contract.ts'

/** Every provider, loaded when a configuration first names it: a folder destination pays for no SDK. */
const PROVIDERS: Record<string, () => Promise<Provider>> = {
  local: async () => (await import('./local/index.ts')).local,
  s3: async () => (await import('./s3/index.ts')).s3,
  aliyun: async () => (await import('./aliyun.ts')).aliyun,
  tcyun: async () => (await import('./tcyun.ts')).tcyun,
  qiniu: async () => (await import('./qiniu.ts')).qiniu,
  ftp: async () => (await import('./ftp/index.ts')).ftp,
  sftp: async () => (await import('./sftp/index.ts')).sftp,
  webdav: async () => (await import('./webdav/index.ts')).webdav,
  azure: async () => (await import('./azure/index.ts')).azure,
  upyun: async () => (await import('./upyun/index.ts')).upyun,
  http: async () => (await import('./http/index.ts')).http,
  imgur: async () => (await import('./imgur.ts')).imgur,
  smms: async () => (await import('./smms.ts')).smms,
  lsky: async () => (await import('./lsky.ts')).lsky,
  chevereto: async () => (await import('./chevereto.ts')).chevereto,
  imgbb: async () => (await import('./imgbb.ts')).imgbb,
  catbox: async () => (await import('./catbox.ts')).catbox,
  piclist: async () => (await import('./piclist.ts')).piclist,
  github: async () => (await import('./github.ts')).github,
  gitea: async () => (await import('./gitea.ts')).gitea,
  gitlab: async () => (await import('./gitlab.ts')).gitlab,
  gitee: async () => (await import('./gitee.ts')).gitee,
}

/** Other names under which providers are known to existing clients and configurations. */
const ALIASES: Record<string, string> = {
  'aws-s3': 's3',
  'aws-s3-plist': 's3',
  webdavplist: 'webdav',
  sftpplist: 'sftp',
  lskyplist: 'lsky',
  'web-uploader': 'http',
  advancedplist: 'http',
}

/** Ids of all providers of this version. */
export const PROVIDER_TYPES: readonly string[] = Object.keys(PROVIDERS)

/** The provider id behind a name that may be an alias. */
export function canonicalType(name: string): string {
  return Object.hasOwn(ALIASES, name) ? (ALIASES[name] as string) : name
}

/** Loads a provider by its id or an alias; undefined when there is none. */
export async function loadProvider(name: string): Promise<Provider | undefined> {
  const type = canonicalType(name)
  return Object.hasOwn(PROVIDERS, type) ? PROVIDERS[type]?.() : undefined
}
