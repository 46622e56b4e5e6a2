import { UploadError } from '../errors.ts'
import { membersOf } from '../members.ts'
import { chooseDestination, type DestinationName, idOf, type LeftOut } from '../uploader/destinations.ts'
import { type Import, noteNames } from './import.ts'
import type { OnProblem } from './interpolate.ts'
import { isRecord, type Json } from './json.ts'
import { listNamed, readDestinations } from './providers.ts'

/**
 * Removes the destinations of a PicGo or PicList file that can't be used. In PicGo they do no harm until they are chosen,
 * but here they would keep the server from starting. The destination in use is kept, so that its errors are reported:
 * files must not be stored anywhere else.
 *
 * @param report gets an error if the destination in use can't be used
 */
export async function leaveOutUnusable(
  { config, notes, places }: Import,
  report: OnProblem,
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
    if (inUse && idOf(named) === idOf(inUse)) {
      report('', `"${path}" is the uploader in use, but it is not valid here: ${problems}.`)
      continue
    }
    leftOut.push({ ...named, reason: problems })
    const remarks = `providers.${named.type}.${named.name}: `
    left = {
      config: without(left.config, named),
      notes: [
        ...left.notes.filter(note => !note.startsWith(remarks)),
        `"${path}" was skipped, because it is not valid here: ${problems}.`,
      ],
    }
  }
  const kept = listNamed(left.config['providers']).filter(named => places.has(idOf(named)))
  const templates = kept.map(named => ({
    id: idOf(named),
    keyTemplate: optionsOf(named, left.config)['keyTemplate'],
  }))
  return { ...left, notes: [...left.notes, ...noteNames(templates)], leftOut }
}

const optionsOf = ({ type, name }: DestinationName, { providers }: Json): Json =>
  membersOf(membersOf(membersOf(providers)[type])[name])

/** Returns undefined if the destination in use is not clear, which is reported elsewhere. */
function findInUse(all: readonly DestinationName[], wanted: unknown): DestinationName | undefined {
  if (typeof wanted !== 'string') return all.length === 1 ? all[0] : undefined
  try {
    return chooseDestination(all, wanted)
  } catch (error) {
    if (error instanceof UploadError) return undefined
    throw error
  }
}

async function problemsOf({ type, name }: DestinationName, providers: unknown): Promise<string> {
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

function without(config: Json, { type, name }: DestinationName): Json {
  const providers = membersOf(config['providers'])
  const { [name]: gone, ...others } = membersOf(providers[type])
  const { [type]: before, ...rest } = providers
  const left = Object.keys(others).length > 0 ? { ...providers, [type]: others } : rest
  return { ...config, providers: withoutMirror(left, idOf({ type, name })) }
}

/** Removes the destination from all mirrors. The note on the destination gives the reason. */
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
