import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json, membersOf } from '../../members.ts'
import { walk } from '../../options.ts'
import { loadProvider } from '../../providers/registry.ts'
import { HASHED_NAME, readPicGo } from '../../providers/shared/picgo-options.ts'
import { type DestinationName, idOf, isCovered, type LeftOut, splitId } from '../../uploader/destinations.ts'
import type { OnProblem } from '../problems.ts'
import { listNamed, readDestination } from '../providers.ts'
import { readBuildIn } from './build-in.ts'
import { listDestinations } from './destinations.ts'
import { noteSkipped, readImages } from './images.ts'
import { readNames, readRenaming } from './naming.ts'
import { compact, openOld } from './old.ts'
import { noteLeftOut, readLog, readNetwork, readRewriteRules, readServer } from './settings.ts'

export interface Import {
  /** The configuration in our format: plain JSON, not validated. */
  readonly config: Json
  /** One sentence for each setting that could not be imported, with its path in the old file. Contains no secrets. */
  readonly notes: readonly string[]
  /** Path of each destination in the old file, by its id. */
  readonly places: ReadonlyMap<string, string>
}

/** Converts a PicGo or PicList file. Never throws. The options of destinations are not checked. */
export async function importPicGo(old: Json): Promise<Import> {
  const notes = new Set<string>()
  const file = openOld(old, '', (path, what) => notes.add(`"${path}" ${what}.`))
  const [picBed, settings] = [file.section('picBed'), file.section('settings')]
  const buildIn = readBuildIn(file.section('buildIn'), settings)
  const keyTemplate = readRenaming(buildIn.general)
  const images = readImages(buildIn.general)
  noteSkipped(file.section('buildIn'))
  const urlRewrite = readRewriteRules(settings)

  const { all, inUse, mirror } = listDestinations(file)
  const providers: Record<string, Json> = {}
  for (const one of all) {
    const { type, name = '' } = splitId(one.id)
    const provider = await loadProvider(type)
    if (!provider?.picgo) throw new Error(`The provider "${type}" reads no options of PicGo.`)
    const { options, notes: own } = readPicGo(one.options, provider.picgo)
    for (const sentence of own) notes.add(`providers.${type}.${name}: ${sentence}`)
    const mine = buildIn.of(one.type, one.oldId)
    const ownImages = readImages(mine)
    providers[type] = {
      ...providers[type],
      [name]: compact({
        ...options,
        ...readNames(options['keyTemplate'], readRenaming(mine), keyTemplate),
        images: isDeepStrictEqual(ownImages, images) ? undefined : (ownImages ?? {}),
        urlRewrite,
        mirrors: mirror === undefined || mirror === one.id ? undefined : [mirror],
      }),
    }
  }
  const config = {
    server: readServer(file, settings),
    providers: all.length > 0 ? providers : undefined,
    default: inUse,
    keyTemplate,
    images,
    network: readNetwork(picBed),
    log: readLog(settings),
  }
  noteLeftOut(file, picBed, settings)
  return {
    config: walk(undefined, compact(config) ?? {}, escapeVariables),
    notes: [...notes],
    places: new Map(all.map(({ id, path }) => [id, path])),
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
  const inUse =
    typeof config['default'] === 'string' ? config['default'] : all.length === 1 && all.map(idOf)[0]
  const optionsOf = ({ type, name }: DestinationName) => membersOf(membersOf(config['providers'])[type])[name]
  const leftOut: LeftOut[] = []
  for (const one of inUse ? all : []) {
    const path = places.get(idOf(one))
    const reason = path === undefined ? '' : await problemsOf(one, optionsOf(one))
    if (reason === '') continue
    if (isCovered(one, [inUse || '']))
      report('', `"${path}" is the uploader in use, but it is not valid here: ${reason}.`)
    else leftOut.push({ ...one, reason })
  }
  const isLeft = (id: unknown) => leftOut.some(one => idOf(one) === id)
  const kept = all.filter(one => !isLeft(idOf(one)))
  const providers: Record<string, Json> = {}
  for (const one of kept) {
    const options = optionsOf(one)
    const { mirrors } = membersOf(options)
    const others = Array.isArray(mirrors) && { mirrors: mirrors.filter(id => !isLeft(id)) }
    providers[one.type] = {
      ...providers[one.type],
      [one.name]: isRecord(options) ? { ...options, ...others } : options,
    }
  }
  const hashed = kept.filter(
    one => places.has(idOf(one)) && `${membersOf(optionsOf(one))['keyTemplate']}`.endsWith(HASHED_NAME),
  )
  const skipped = leftOut.map(
    one => `"${places.get(idOf(one))}" was skipped, because it is not valid here: ${one.reason}.`,
  )
  const isOfLeft = (note: string) =>
    leftOut.some(({ type, name }) => note.startsWith(`providers.${type}.${name}: `))
  const names = hashed.length > 0 ? [`Files at ${hashed.map(idOf).join(', ')} ${OTHER_NAMES}`] : []
  return {
    config: { ...config, providers },
    notes: [...notes.filter(note => !isOfLeft(note)), ...skipped, ...names],
    leftOut,
  }
}

const OTHER_NAMES =
  'get names such as "name-1a2b3c4d.png", so that no file overwrites another. To change that, set "keyTemplate".'

async function problemsOf({ type, name }: DestinationName, options: unknown): Promise<string> {
  const provider = await loadProvider(type)
  const problems: string[] = []
  const report = (option: string, message: string) =>
    problems.push(option === '' ? message.replace(/\.$/, '') : `"${option}" ${message}`)
  if (provider) readDestination(provider, name, options, path => path, report)
  return problems.join('; ')
}
