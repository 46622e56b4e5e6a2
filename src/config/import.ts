import { tellsApart } from '../payload/object-key.ts'
import { loadProvider } from '../providers/registry.ts'
import { HASHED_NAME, readPicGo } from '../providers/shared/picgo-options.ts'
import { isRecord, type Json } from './json.ts'
import { translatePicGo } from './picgo/index.ts'
import { NOT_RENAMED } from './picgo/naming.ts'
import { configSchema } from './schema.ts'

/** The endings of key templates that providers make from PicGo's options: after a folder, and for hosts without folders. */
const NAMES = [HASHED_NAME, '{filename}{extname}']
const STANDARD = configSchema.shape.keyTemplate.parse(undefined)

export interface Import {
  config: Json
  /** One sentence for each setting that could not be imported. */
  notes: string[]
  /** Path of each destination in the old file, by its id. */
  places: Map<string, string>
  /** Where our settings are in the old file, the most specific first. Of several places, the first that the file has is used. */
  moved: readonly { readonly from: string; readonly to: readonly string[] }[]
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

/** Converts a PicGo or PicList file. The options of destinations are not checked. */
export async function importPicGo(old: Json): Promise<Import> {
  const places = new Map<string, string>()
  const { config, notes } = translatePicGo(old, (id, path) => places.set(id, path))
  const urlRewrite = readRewriteRules(old, notes)
  const providers: Json = {}
  for (const [type, saved] of Object.entries(isRecord(config['providers']) ? config['providers'] : {})) {
    const provider = await loadProvider(type)
    if (!isRecord(saved)) continue
    const read: Json = {}
    for (const [name, options] of Object.entries(saved)) {
      if (!isRecord(options)) continue
      const { keyTemplate, images, mirrors, ...theirs } = options
      const translated = provider?.picgo ? readPicGo(theirs, provider.picgo) : { options: theirs, notes: [] }
      for (const note of translated.notes) notes.push(`providers.${type}.${name}: ${note}`)
      const own = {
        ...translated.options,
        ...(images !== undefined && { images }),
        ...(mirrors !== undefined && { mirrors }),
        ...(urlRewrite.length > 0 && { urlRewrite }),
      }
      const named = withName(own, keyTemplate ?? (provider?.picgo && config['keyTemplate']))
      read[name] = asReplacing(named, named['keyTemplate'] ?? config['keyTemplate'])
    }
    providers[type] = read
  }
  const moved = [...places].map(([id, path]) => ({ from: `providers.${id.replace('/', '.')}`, to: [path] }))
  return {
    config: Object.keys(providers).length > 0 ? { ...config, providers } : config,
    notes,
    places,
    moved: [...moved, ...MOVED],
  }
}

/** Says at which of these destinations files get other names than from the old program. */
export function noteNames(destinations: readonly { id: string; keyTemplate: unknown }[]): string[] {
  const hashed = destinations.filter(({ keyTemplate }) => `${keyTemplate}`.endsWith(HASHED_NAME))
  if (hashed.length === 0) return []
  return [
    `Files at ${hashed.map(({ id }) => id).join(', ')} get names such as "name-1a2b3c4d.png", so that no file overwrites another. To change that, set "keyTemplate".`,
  ]
}

/** Combines the folder of a destination with the name that PicGo's renaming makes. */
function withName(options: Json, renaming: unknown): Json {
  const { keyTemplate } = options
  if (typeof renaming !== 'string') return options
  if (renaming === NOT_RENAMED) return { ...options, keyTemplate: keyTemplate ?? STANDARD }
  if (typeof keyTemplate !== 'string') return { ...options, keyTemplate: renaming }
  const name = NAMES.find(one => keyTemplate.endsWith(one))
  if (name === undefined) return options
  return { ...options, keyTemplate: keyTemplate.slice(0, -name.length) + renaming }
}

/** In PicGo and PicList, a new file replaces an existing one of the same name. */
function asReplacing(options: Json, template: unknown): Json {
  if (typeof template !== 'string' || tellsApart(template)) return options
  return { ...options, onConflict: 'replace' }
}

/** Reads PicGo's rewrite rules for links, which apply to all destinations. PicGo applies only the first rule that matches. */
function readRewriteRules(old: Json, notes: string[]): Json[] {
  const settings = isRecord(old['settings']) ? old['settings'] : {}
  const { rules } = isRecord(settings['urlRewrite']) ? settings['urlRewrite'] : {}
  const usable = (Array.isArray(rules) ? rules : []).flatMap((rule): Json[] => {
    if (!isRecord(rule) || rule['enable'] === false) return []
    const { match, replace, global, ignoreCase } = rule
    if (typeof match !== 'string' || !isPattern(match) || typeof replace !== 'string') {
      notes.push(
        `"settings.urlRewrite.rules": the rule ${JSON.stringify(match)} was skipped, because it is not valid.`,
      )
      return []
    }
    const flags = (global === true ? 'g' : '') + (ignoreCase === true ? 'i' : '')
    return [{ from: match, to: replace, ...(flags && { flags }) }]
  })
  if (usable.length > 1)
    notes.push('"settings.urlRewrite.rules": all matching rules are applied in order, not only the first.')
  return usable
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text)
    return text !== ''
  } catch {
    return false
  }
}
