import { UploadError } from '../errors.ts'
import type { Json } from '../members.ts'
import { chooseDestination, type DestinationName, idOf, type LeftOut } from '../uploader/destinations.ts'
import { type Import, noteNames } from './import.ts'
import type { OnProblem } from './problems.ts'
import { listNamed, readDestinations } from './providers.ts'

/** Options of destinations, by provider and name. */
type Saved = Record<string, Record<string, Json>>

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
  // The cast is safe: the import and the environment make nothing else of them.
  const saved = structuredClone(config['providers'] ?? {}) as Saved
  const inUse = findInUse(listNamed(saved), config['default'])
  const leftOut: LeftOut[] = []
  const remarks: string[] = []
  for (const { type, name } of inUse === undefined ? [] : listNamed(saved)) {
    const id = idOf({ type, name })
    const path = places.get(id)
    const reason = path === undefined ? '' : await problemsOf(type, name, saved[type]?.[name])
    if (reason === '') continue
    if (inUse === id) {
      report('', `"${path}" is the uploader in use, but it is not valid here: ${reason}.`)
      continue
    }
    leftOut.push({ type, name, reason })
    remarks.push(`"${path}" was skipped, because it is not valid here: ${reason}.`)
    remove(saved, type, name)
  }
  const isKept = (note: string) =>
    !leftOut.some(({ type, name }) => note.startsWith(`providers.${type}.${name}: `))
  const kept = listNamed(saved).flatMap(({ type, name }) => {
    const id = idOf({ type, name })
    return places.has(id) ? [{ id, keyTemplate: saved[type]?.[name]?.['keyTemplate'] }] : []
  })
  return {
    config: { ...config, providers: saved },
    notes: [...notes.filter(isKept), ...remarks, ...noteNames(kept)],
    leftOut,
  }
}

/** Returns undefined if the destination in use is not clear, which is reported elsewhere. */
function findInUse(all: readonly DestinationName[], wanted: unknown): string | undefined {
  if (typeof wanted !== 'string') return all.length === 1 && all[0] ? idOf(all[0]) : undefined
  try {
    return idOf(chooseDestination(all, wanted))
  } catch (error) {
    if (error instanceof UploadError) return undefined
    throw error
  }
}

async function problemsOf(type: string, name: string, options: unknown): Promise<string> {
  const problems: string[] = []
  await readDestinations(
    { [type]: { [name]: options } },
    path => path,
    (path, message) => {
      const option = path.slice(`providers.${type}.${name}.`.length)
      problems.push(option === '' ? message.replace(/\.$/, '') : `"${option}" ${message}`)
    },
  )
  return problems.join('; ')
}

/** Removes a destination, also from all mirrors. The note on it gives the reason. */
function remove(saved: Saved, type: string, name: string): void {
  const ofType = saved[type] ?? {}
  delete ofType[name]
  if (Object.keys(ofType).length === 0) delete saved[type]
  for (const options of Object.values(saved).flatMap(one => Object.values(one ?? {}))) {
    const mirrors = options?.['mirrors']
    if (!Array.isArray(mirrors)) continue
    const others = mirrors.filter(mirror => mirror !== idOf({ type, name }))
    if (others.length > 0) options['mirrors'] = others
    else delete options['mirrors']
  }
}
