import { UploadError } from '../errors.ts'
import { chooseDestination, idOf, type LeftOut, type Named } from '../uploader/delivery/destinations.ts'
import type { Import } from './import.ts'
import type { Report } from './interpolate.ts'
import { isRecord, type Json } from './json.ts'
import { listNamed, readDestinations } from './providers.ts'

/**
 * Takes the saved configurations of a PicGo or PicList file out that can't be used. There they do no harm until they are
 * chosen, and here they would stop the server. The one in use stays, so that its mistakes are found: files must not go
 * anywhere else.
 *
 * @param report gets the path of the one in use, in their words, when it can't be used
 */
export async function leaveOutUnusable(
  { config, notes, places }: Import,
  report: Report,
): Promise<{ config: Json; notes: string[]; leftOut: LeftOut[] }> {
  const all = listNamed(config['providers'])
  const inUse = findInUse(all, config['default'])
  const leftOut: LeftOut[] = []
  let left = { config, notes }
  for (const named of inUse === undefined ? [] : all) {
    const path = places.get(idOf(named))
    if (path === undefined) continue
    const problems = await problemsOf(named, config['providers'])
    if (problems === '') continue
    if (idOf(named) === idOf(inUse as Named)) {
      report('', `"${path}" is in use and can't be used here: ${problems}.`)
      continue
    }
    leftOut.push({ ...named, reason: problems })
    const remarks = `providers.${named.type}.${named.name}: `
    left = {
      config: without(left.config, named),
      notes: [
        ...left.notes.filter(note => !note.startsWith(remarks)),
        `"${path}" was left out, since it can't be used here: ${problems}.`,
      ],
    }
  }
  return { ...left, leftOut }
}

/** Undefined when that is not clear, which is a mistake of its own. */
function findInUse(all: readonly Named[], wanted: unknown): Named | undefined {
  if (typeof wanted !== 'string') return all.length === 1 ? all[0] : undefined
  try {
    return chooseDestination(all, wanted)
  } catch (error) {
    if (error instanceof UploadError) return undefined
    throw error
  }
}

async function problemsOf({ type, name }: Named, providers: unknown): Promise<string> {
  const saved = isRecord(providers) && isRecord(providers[type]) ? providers[type][name] : undefined
  const problems: string[] = []
  await readDestinations(
    { [type]: { [name]: saved } },
    path => path,
    (path, message) => {
      const option = path.slice(`providers.${type}.${name}.`.length)
      problems.push(option === '' ? message.replace(/\.$/, '') : `"${option}" ${message}`)
    },
  )
  return problems.join('; ')
}

function without(config: Json, { type, name }: Named): Json {
  const providers = config['providers'] as Record<string, Json>
  const { [name]: _, ...others } = providers[type] as Json
  const { [type]: __, ...rest } = providers
  const left = Object.keys(others).length > 0 ? { ...providers, [type]: others } : rest
  return { ...config, providers: withoutMirror(left, idOf({ type, name })) }
}

/** Copies go there no more: the note on the destination says why. */
function withoutMirror(providers: Json, id: string): Json {
  const rest = ({ mirrors, ...options }: Json): Json => {
    const others = Array.isArray(mirrors) ? mirrors.filter(mirror => mirror !== id) : []
    return others.length > 0 ? { ...options, mirrors: others } : options
  }
  return mapValues(providers, saved =>
    isRecord(saved) ? mapValues(saved, one => (isRecord(one) ? rest(one) : one)) : saved,
  )
}

function mapValues(record: Json, change: (value: unknown) => unknown): Json {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}
