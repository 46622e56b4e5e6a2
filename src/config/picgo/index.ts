import type { Json } from '../../members.ts'
import { walk } from '../../options.ts'
import { loadProvider } from '../../providers/registry.ts'
import { readPicGo } from '../../providers/shared/picgo-options.ts'
import { type Convert, readDestinations } from './destinations.ts'
import { nameOf, readNaming } from './naming.ts'
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
