import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { makePath } from '../files/make-path.ts'
import { membersOf } from '../members.ts'
import { type ListenAddress, probeServer, urlOf } from './port.ts'

type Located = Pick<LoadedConfig, 'dataDirectory'> & { readonly settings: Pick<Settings, 'server' | 'store'> }

/** The file next to the database that has the URL of the running server, whose port may differ from the configured one. */
const fileOf = ({ settings, dataDirectory }: Located) =>
  `${settings.store.path ?? join(dataDirectory, 'store.db')}-server`

/** Saves the URL at which a server listens. @returns deletes it, unless a later server has replaced it */
export async function noteUrl(config: Located, url: string): Promise<() => Promise<void>> {
  const file = fileOf(config)
  await makePath(dirname(file), 0o700)
  const text = JSON.stringify({ url, pid: process.pid })
  await writeFile(file, text, { mode: 0o600 })
  return async () => {
    if ((await readFile(file, 'utf8')) === text) await rm(file)
  }
}

/** URL of the server that uses the database of a configuration; undefined if none responds. */
export async function findRunning(config: Located): Promise<string | undefined> {
  try {
    const { url } = membersOf(JSON.parse(await readFile(fileOf(config), 'utf8')))
    if (typeof url !== 'string') return undefined
    return (await probeServer(placeOf(url))).isAlive ? url : undefined
  } catch {
    return undefined // A server that was killed leaves the file behind, and a full disk truncates it.
  }
}

/** Where a server listens, from its URL as it is logged. */
export function placeOf(url: string): ListenAddress | URL {
  return url.startsWith('unix:') ? { host: url.slice('unix:'.length), port: 0 } : new URL(url)
}

/** Base URL of files that the server itself serves, with a final slash. */
export async function findBase(config: Located): Promise<string> {
  const { publicUrl, host } = config.settings.server
  const own = async () => (await findRunning(config)) ?? urlOf(config.settings.server)
  const url = publicUrl ?? (isSocketPath(host) ? 'http://localhost' : await own())
  return url.endsWith('/') ? url : `${url}/`
}

/**
 * Explains why links can't be opened now, as the end of a sentence. Undefined if none of them leads to the server, or if the
 * server is running.
 *
 * @param base base URL of the server
 */
export async function explainUnreachableLinks(
  urls: readonly string[],
  base: string,
  config: Located,
): Promise<string | undefined> {
  if (!urls.some(url => url.startsWith(base)) || (await findRunning(config)) !== undefined) return undefined
  const { publicUrl } = config.settings.server
  const { isAlive } = await probeServer(publicUrl === undefined ? config.settings.server : new URL(publicUrl))
  if (publicUrl !== undefined) return isAlive ? undefined : `no upload server responds at ${base}`
  return isAlive ? `the server at ${base} uses another database` : 'it is not running'
}
