import { UploadError } from '../../errors.ts'
import { isRecord, type Json, membersOf } from '../../members.ts'
import { walk } from '../../options.ts'
import { loadProvider } from '../../providers/registry.ts'
import { readPicGo } from '../../providers/shared/picgo-options.ts'
import { chooseDestination, type DestinationName, idOf, type LeftOut } from '../../uploader/destinations.ts'
import type { OnProblem } from '../problems.ts'
import { readDestinations as checkDestinations, listNamed } from '../providers.ts'
import { type Convert, readDestinations } from './destinations.ts'
import { nameOf, noteNames, readNaming } from './naming.ts'
import { compact, openOld } from './old.ts'
import { readPictures } from './pictures.ts'
import { noteLeftOut, readLog, readNetwork, readRewriteRules, readServer } from './settings.ts'

export interface Import {
  /** The configuration in our format: plain JSON, not validated. */
  readonly config: Json
  /** One sentence for each setting that could not be imported, with its path in the old file. Contains no secrets. */
  readonly notes: readonly string[]
  /** Path of each destination in the old file, by its id. */
  readonly places: ReadonlyMap<string, string>
  /** Where our settings are in the old file, the most specific first. Of several places, the first that the file has is used. */
  readonly moved: readonly { readonly from: string; readonly to: readonly string[] }[]
}

const MOVED = [
  { from: 'default', to: ['picBed.uploader', 'picBed.current'] },
  { from: 'keyTemplate', to: ['buildIn.rename', 'settings.autoRename'] },
  { from: 'log.level', to: ['settings.logLevel'] },
  { from: 'images', to: ['buildIn'] },
  {
    from: 'server.key',
    to: ['settings.serverKey', 'settings.server.secret', 'settings.server.key', 'server.key'],
  },
  { from: 'server', to: ['settings.server', 'server'] },
]

/** Converts a PicGo or PicList file. Never throws. The options of destinations are not checked. */
export async function importPicGo(old: Json): Promise<Import> {
  const notes = new Set<string>()
  const note = (path: string, what: string) => void notes.add(`"${path}" ${what}.`)
  const file = openOld(old, '', note)
  const [picBed, settings] = [file.section('picBed'), file.section('settings')]
  const buildIn = file.section('buildIn')
  const entries = buildIn.list('list')
  const naming = readNaming(settings, buildIn, entries)
  const pictures = readPictures(buildIn, entries)
  const urlRewrite = readRewriteRules(settings)

  const convert: Convert = async (type, name, one) => {
    const provider = await loadProvider(type)
    if (!provider?.picgo) throw new Error(`The provider "${type}" reads no options of PicGo.`)
    const { options, notes: own } = readPicGo(one.options, provider.picgo)
    for (const sentence of own) notes.add(`providers.${provider.type}.${name}: ${sentence}`)
    const renaming = naming.own.get(one.id ?? '') ?? naming.general
    const images = pictures.own(type, one.id)
    return compact({ ...options, ...nameOf(options['keyTemplate'], renaming), images, urlRewrite }) ?? {}
  }
  const { providers, default: chosen, places } = await readDestinations(file, note, convert)
  const config = {
    server: readServer(file, settings),
    providers: places.size > 0 ? providers : undefined,
    default: chosen,
    keyTemplate: naming.general,
    images: pictures.general,
    network: readNetwork(picBed),
    log: readLog(settings),
  }
  noteLeftOut(file, picBed, settings)
  const moved = [...places].map(([id, path]) => ({ from: `providers.${id.replace('/', '.')}`, to: [path] }))
  return {
    config: walk(undefined, compact(config) ?? {}, escapeVariables),
    notes: [...notes],
    places,
    moved: [...moved, ...MOVED],
  }
}

/** Replaces `${` with `$${`, because it is plain text in files of PicGo and a variable in ours. */
const escapeVariables = (value: unknown) =>
  typeof value === 'string' ? value.replaceAll('${', '$$$${') : value

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
    return idOf(chooseDestination({ destinations: all, defaultId: wanted }))
  } catch (error) {
    if (error instanceof UploadError) return undefined
    throw error
  }
}

async function problemsOf({ type, name }: DestinationName, options: unknown): Promise<string> {
  const problems: string[] = []
  await checkDestinations(
    { [type]: { [name]: options } },
    path => path,
    (path, message) => {
      const option = path.slice(`providers.${type}.${name}.`.length)
      problems.push(option === '' ? message.replace(/\.$/, '') : `"${option}" ${message}`)
    },
  )
  return problems.join('; ')
}
