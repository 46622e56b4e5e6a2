import { UploadError } from '../../errors.ts'
import { isRecord, type Json, membersOf } from '../../members.ts'
import { chooseDestination, type DestinationName, idOf, type LeftOut } from '../../uploader/destinations.ts'
import type { OnProblem } from '../problems.ts'
import { listNamed, readDestinations } from '../providers.ts'
import type { Import } from './index.ts'
import { noteNames } from './naming.ts'
import { compact } from './old.ts'

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
  const optionsOf = ({ type, name }: DestinationName) => membersOf(membersOf(config['providers'])[type])[name]
  const leftOut: LeftOut[] = []
  for (const one of inUse === undefined ? [] : all) {
    const path = places.get(idOf(one))
    const reason = path === undefined ? '' : await problemsOf(one, optionsOf(one))
    if (reason !== '' && inUse !== idOf(one)) leftOut.push({ ...one, reason })
    else if (reason !== '')
      report('', `"${path}" is the uploader in use, but it is not valid here: ${reason}.`)
  }
  const isLeft = (id: unknown) => leftOut.some(one => idOf(one) === id)
  const kept = all.filter(one => !isLeft(idOf(one)))
  const providers: Record<string, Record<string, unknown>> = {}
  for (const one of kept) {
    const options = optionsOf(one)
    providers[one.type] = { ...providers[one.type], [one.name]: withoutMirrors(options, isLeft) }
  }
  const skipped = leftOut.map(
    one => `"${places.get(idOf(one))}" was skipped, because it is not valid here: ${one.reason}.`,
  )
  const isOfLeft = (note: string) =>
    leftOut.some(({ type, name }) => note.startsWith(`providers.${type}.${name}: `))
  const imported = kept.filter(one => places.has(idOf(one)))
  const named = imported.map(one => ({
    id: idOf(one),
    keyTemplate: membersOf(optionsOf(one))['keyTemplate'],
  }))
  return {
    config: { ...config, providers },
    notes: [...notes.filter(note => !isOfLeft(note)), ...skipped, ...noteNames(named)],
    leftOut,
  }
}

function withoutMirrors(options: unknown, isLeft: (id: unknown) => boolean): unknown {
  if (!isRecord(options) || !Array.isArray(options['mirrors'])) return options
  const mirrors = options['mirrors'].filter(id => !isLeft(id))
  return compact({ ...options, mirrors: mirrors.length > 0 ? mirrors : undefined })
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

async function problemsOf({ type, name }: DestinationName, options: unknown): Promise<string> {
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
