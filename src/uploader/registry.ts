import type { Provider } from './provider.ts'

/** Every provider, loaded when a configuration first names it: a folder destination pays for no SDK. */
const PROVIDERS: Record<string, () => Promise<Provider>> = {
  local: async () => (await import('./providers/local.ts')).local,
  s3: async () => (await import('./providers/s3.ts')).s3,
  aliyun: async () => (await import('./providers/aliyun.ts')).aliyun,
  tcyun: async () => (await import('./providers/tcyun.ts')).tcyun,
  qiniu: async () => (await import('./providers/qiniu.ts')).qiniu,
  ftp: async () => (await import('./providers/ftp.ts')).ftp,
  sftp: async () => (await import('./providers/sftp.ts')).sftp,
  webdav: async () => (await import('./providers/webdav.ts')).webdav,
  azure: async () => (await import('./providers/azure.ts')).azure,
  upyun: async () => (await import('./providers/upyun.ts')).upyun,
  http: async () => (await import('./providers/http.ts')).http,
  imgur: async () => (await import('./providers/imgur.ts')).imgur,
  smms: async () => (await import('./providers/smms.ts')).smms,
  lsky: async () => (await import('./providers/lsky.ts')).lsky,
  chevereto: async () => (await import('./providers/chevereto.ts')).chevereto,
  imgbb: async () => (await import('./providers/imgbb.ts')).imgbb,
  catbox: async () => (await import('./providers/catbox.ts')).catbox,
  piclist: async () => (await import('./providers/piclist.ts')).piclist,
  github: async () => (await import('./providers/github.ts')).github,
  gitea: async () => (await import('./providers/gitea.ts')).gitea,
  gitlab: async () => (await import('./providers/gitlab.ts')).gitlab,
  gitee: async () => (await import('./providers/gitee.ts')).gitee,
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
