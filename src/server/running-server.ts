import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import type { Database } from '../store/database.ts'
import { listServers, type Served } from '../store/owners.ts'
import { type Destination, idOf } from '../uploader/destinations.ts'
import { openDatabase } from './open-uploader.ts'
import { type ListenAddress, probeServer, urlOf } from './port.ts'

type Located = Pick<LoadedConfig, 'dataDirectory'> & {
  readonly settings: Pick<Settings, 'server' | 'database'>
}

/** A destination and the location of its files: another server may have other files under the same name. */
export const placeIn = (destination: Pick<Destination, 'type' | 'name' | 'location'>) =>
  `${idOf(destination)} ${destination.location}`

/** The running servers of this machine that use the database of a configuration. None if it can't be read. */
async function listRunning(config: Located): Promise<Served[]> {
  let database: Database | undefined
  try {
    database = openDatabase(config, 'read')
    return await database.read(listServers)
  } catch {
    return []
  } finally {
    await database?.close()
  }
}

/**
 * URL of a server that uses the database of a configuration; undefined if none is running.
 *
 * @param place of a destination that it must have, as `placeIn` names it
 */
export async function findRunning(config: Located, place?: string): Promise<string | undefined> {
  const running = await listRunning(config)
  return running.find(one => place === undefined || one.destinations.includes(place))?.url
}

/** Where a server listens, from its URL as it is logged. */
export function placeOf(url: string): ListenAddress | URL {
  return url.startsWith('unix:') ? { host: url.slice('unix:'.length), port: 0 } : new URL(url)
}

/** Base URL of the files of a destination that the server itself serves, with a final slash. */
export async function findBase(
  config: Located,
  destination: Pick<Destination, 'type' | 'name' | 'location'>,
): Promise<string> {
  const { publicUrl, host } = config.settings.server
  const own = async () => (await findRunning(config, placeIn(destination))) ?? urlOf(config.settings.server)
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
  destination: Destination,
): Promise<string | undefined> {
  if (!urls.some(url => url.startsWith(base))) return undefined
  const running = await listRunning(config)
  if (running.some(one => one.destinations.includes(placeIn(destination)))) return undefined
  if (running.length > 0) return `the running server does not have the destination "${idOf(destination)}"`
  const { publicUrl } = config.settings.server
  const { isAlive } = await probeServer(publicUrl === undefined ? config.settings.server : new URL(publicUrl))
  if (publicUrl !== undefined) return isAlive ? undefined : `no upload server responds at ${base}`
  return isAlive ? `the server at ${base} uses another database` : 'it is not running'
}
