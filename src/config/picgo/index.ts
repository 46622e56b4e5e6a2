import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../members.ts'
import { walk } from '../../options.ts'
import { loadProvider } from '../../providers/registry.ts'
import { HASHED_NAME, readPicGo } from '../../providers/shared/picgo-options.ts'
import { type LeftOut, splitId } from '../../uploader/destinations.ts'
import { readDestination } from '../providers.ts'
import { type BuildIn, readBuildIn } from './build-in.ts'
import { listDestinations, type Saved } from './destinations.ts'
import { noteSkipped, readImages } from './images.ts'
import { readNames, readRenaming } from './naming.ts'
import { compact, openOld } from './old.ts'
import { noteLeftOut, readLog, readNetwork, readRewriteRules, readServer } from './settings.ts'

export interface Import {
  /** The configuration in our format: plain JSON. Only the destination in use may be invalid. */
  readonly config: Json
  /** One sentence for each setting that could not be imported, with its path in the old file. Contains no secrets. */
  readonly notes: readonly string[]
  /** The path in the old file of each destination. */
  readonly places: ReadonlyMap<string, string>
  /** Destinations that can't be used. */
  readonly leftOut: readonly LeftOut[]
  /** Why the destination in use can't be used. */
  readonly problem?: string | undefined
}

/**
 * Converts a PicGo or PicList file. Never throws.
 *
 * Destinations that can't be used are skipped: in PicGo they do no harm until they are chosen, but here they would keep
 * the server from starting. The one in use is kept, so that its errors are reported: files must not be stored anywhere else.
 */
export async function importPicGo(old: Json): Promise<Import> {
  const notes = new Set<string>()
  const file = openOld(old, '', (path, what) => notes.add(`"${path}" ${what}.`))
  const [picBed, settings] = [file.section('picBed'), file.section('settings')]
  const buildIns = readBuildIn(file.section('buildIn'), settings)
  noteSkipped(file.section('buildIn'))
  const urlRewrite = readRewriteRules(settings)

  const keyTemplate = readRenaming(buildIns.general)
  const images = readImages(buildIns.general)

  const { all, inUse, mirror, problem } = listDestinations(file)
  const converted = await Promise.all(
    all.map(one => convert(one, buildIns.of(one.type, one.oldId), { keyTemplate, images })),
  )
  const leftOut = converted.filter(one => one.reason !== '' && inUse !== undefined && one.id !== inUse)
  const kept = converted.filter(one => !leftOut.includes(one))
  const providers: Record<string, Json> = {}
  for (const { id, type, name, options, notes: own } of kept) {
    for (const sentence of own) notes.add(`providers.${type}.${name}: ${sentence}`)
    const mirrors = mirror !== id && kept.some(one => one.id === mirror) ? [mirror] : undefined
    providers[type] = { ...providers[type], [name]: compact({ ...options, urlRewrite, mirrors }) ?? {} }
  }
  const config = {
    server: readServer(file, settings),
    providers: kept.length > 0 ? providers : undefined,
    default: inUse,
    keyTemplate,
    images,
    network: readNetwork(picBed),
    log: readLog(settings),
  }
  noteLeftOut(file, picBed, settings)
  for (const { path, reason } of leftOut)
    notes.add(`"${path}" was skipped, because it is not valid here: ${reason}.`)
  const hashed = kept.filter(({ options }) => `${options['keyTemplate']}`.endsWith(HASHED_NAME))
  if (hashed.length > 0)
    notes.add(
      `Files at ${hashed.map(({ id }) => id).join(', ')} get names such as "name-1a2b3c4d.png", so that no file overwrites another. To change that, set "keyTemplate".`,
    )
  const used = kept.find(({ id, reason }) => id === inUse && reason !== '')
  return {
    config: walk(undefined, compact(config) ?? {}, escapeVariables),
    notes: [...notes],
    places: new Map(kept.map(({ type, name, path }) => [`providers.${type}.${name}`, path])),
    leftOut: leftOut.map(({ type, name, reason }) => ({ type, name, reason })),
    problem:
      problem ?? (used && `"${used.path}" is the uploader in use, but it is not valid here: ${used.reason}.`),
  }
}

/**
 * What an uploader has saved, as options of our provider. `reason` tells why they can't be used; empty if they can.
 *
 * @param buildIn as it applies to this destination
 * @param general what all destinations have
 */
async function convert(
  { id, path, options: old }: Saved,
  buildIn: BuildIn,
  general: { readonly keyTemplate: string | undefined; readonly images: Json | undefined },
) {
  const { type, name = '' } = splitId(id)
  const provider = await loadProvider(type)
  if (!provider?.picgo) throw new Error(`The provider "${type}" reads no options of PicGo.`)
  const { options: own, notes } = readPicGo(old, provider.picgo)
  const names = readNames(own['keyTemplate'], readRenaming(buildIn), general.keyTemplate)
  const mine = readImages(buildIn)
  const images = isDeepStrictEqual(mine, general.images) ? undefined : (mine ?? {})
  const options = compact({ ...own, ...names, images }) ?? {}
  const problems: string[] = []
  readDestination(
    provider,
    name,
    options,
    path => path,
    (option, message) => problems.push(option === '' ? message.replace(/\.$/, '') : `"${option}" ${message}`),
  )
  return { id, type, name, path, options, notes, reason: problems.join('; ') }
}

/** Replaces `${` with `$${`, because it is plain text in files of PicGo and a variable in ours. */
const escapeVariables = (value: unknown) =>
  typeof value === 'string' ? value.replaceAll('${', '$$$${') : value
