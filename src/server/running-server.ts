import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { systemCode } from '../errors.ts'
import { makePath } from '../files/make-path.ts'
import { membersOf } from '../members.ts'
import { type Destination, idOf } from '../uploader/destinations.ts'
import { type ListenAddress, probeServer, urlOf } from './port.ts'

type Located = Pick<LoadedConfig, 'dataDirectory'> & {
  readonly settings: Pick<Settings, 'server' | 'database'>
}

/** A running server of this data folder. There may be several, with different configurations. */
interface Entry {
  /** Its port may differ from the configured one. */
  readonly url: string
  /** Its destinations, as `placeIn` names them. */
  readonly destinations: readonly string[]
}

/** A destination and the location of its files: another server may have other files under the same name. */
export const placeIn = (destination: Pick<Destination, 'type' | 'name' | 'location'>) =>
  `${idOf(destination)} ${destination.location}`

/** The files next to the database that have the entries: the first, and those with `-2`, `-3`… at the end. */
const fileOf = ({ settings, dataDirectory }: Located) =>
  `${settings.database.path ?? join(dataDirectory, 'store.db')}-server`

const isSame = (a: string | undefined, b: string) => a !== undefined && new URL(a).href === new URL(b).href

/** The note of a running server. */
export interface Note {
  /** Replaces the destinations, after a reload. */
  update(destinations: readonly string[]): Promise<void>
  forget(): Promise<void>
}

/** Saves where a server listens, and what it serves. */
export async function noteServer(
  config: Located,
  url: string,
  destinations: readonly string[],
): Promise<Note> {
  const first = fileOf(config)
  await makePath(dirname(first), 0o700)
  let text = ''
  const toText = (destinations: readonly string[]) =>
    (text = JSON.stringify({ url, pid: process.pid, destinations }))
  const file = await claim(first, url, toText(destinations))
  return {
    async update(destinations) {
      await writeFile(file, toText(destinations), { mode: 0o600 })
    },
    async forget() {
      if ((await readFile(file, 'utf8')) === text) await rm(file)
    },
  }
}

/** Writes a new entry, or replaces that of a server that has ended. @returns its file */
async function claim(first: string, url: string, text: string): Promise<string> {
  for (let number = 1; ; number++) {
    const file = number === 1 ? first : `${first}-${number}`
    try {
      await writeFile(file, text, { mode: 0o600, flag: 'wx' })
      return file
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error
    }
    const entry = await readEntry(file)
    // Only this server listens at its URL.
    const isFree = entry === undefined || isSame(entry.url, url) || !(await isAlive(entry))
    if (!isFree) continue
    await writeFile(file, text, { mode: 0o600 })
    return file
  }
}

/** @returns undefined for an empty or damaged file, which a full disk leaves behind */
async function readEntry(file: string): Promise<Entry | undefined> {
  try {
    const { url, destinations } = membersOf(JSON.parse(await readFile(file, 'utf8')))
    if (typeof url !== 'string' || !Array.isArray(destinations) || !URL.canParse(url)) return undefined
    return { url, destinations }
  } catch {
    return undefined
  }
}

/** A server that was killed leaves its entry behind. */
const isAlive = async ({ url }: Entry) => (await probeServer(placeOf(url))).isAlive

async function listRunning(config: Located): Promise<Entry[]> {
  const first = fileOf(config)
  const names = await readdir(dirname(first)).catch(() => [])
  const mine = names.filter(name => name.startsWith(basename(first)) && /-server(?:-\d+)?$/.test(name))
  const entries = await Promise.all(mine.sort().map(name => readEntry(join(dirname(first), name))))
  const found = entries.filter(entry => entry !== undefined)
  const alive = await Promise.all(found.map(isAlive))
  return found.filter((_, index) => alive[index])
}

/**
 * URL of a server that uses the database of a configuration; undefined if none responds.
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
