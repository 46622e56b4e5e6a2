import { namesContent } from '../payload/object-key.ts'
import { loadProvider } from '../providers/registry.ts'
import { HASHED_NAME } from '../providers/shared/picgo-options.ts'
import { isRecord, type Json } from './json.ts'
import { translatePicGo } from './picgo/index.ts'
import { NOT_RENAMED } from './picgo/naming.ts'
import { configSchema } from './schema.ts'

/** How a key ends that a provider makes of PicGo's options: with a folder in front, and for hosts that have none. */
const NAMES = [HASHED_NAME, '{filename}{extname}']
const STANDARD = configSchema.shape.keyTemplate.parse(undefined)

export interface Import {
  config: Json
  /** A sentence for each thing that is lost. */
  notes: string[]
  /** Where each destination stands in the old file, by its id. */
  places: Map<string, string>
}

/** A PicGo or PicList file as a configuration of ours. What it says of destinations is not checked. */
export async function importPicGo(old: Json): Promise<Import> {
  const places = new Map<string, string>()
  const { config, notes } = translatePicGo(old, (id, path) => places.set(id, path))
  const urlRewrite = readRewriteRules(old, notes)
  const providers: Json = {}
  /** Destinations where names differ from those that the old program gave. */
  const hashed: string[] = []
  for (const [type, saved] of Object.entries(isRecord(config['providers']) ? config['providers'] : {})) {
    const provider = await loadProvider(type)
    if (!isRecord(saved)) continue
    const read: Json = {}
    for (const [name, options] of Object.entries(saved)) {
      if (!isRecord(options)) continue
      const { keyTemplate, pictures, mirrors, ...theirs } = options
      const translated = provider?.fromPicGo?.(theirs) ?? { options: theirs, notes: [] }
      for (const note of translated.notes) notes.push(`providers.${type}.${name}: ${note}`)
      const own = {
        ...translated.options,
        ...(pictures !== undefined && { pictures }),
        ...(mirrors !== undefined && { mirrors }),
        ...(urlRewrite.length > 0 && { urlRewrite }),
      }
      const named = withName(own, keyTemplate ?? (provider?.fromPicGo && config['keyTemplate']))
      if (`${named['keyTemplate']}`.endsWith(HASHED_NAME)) hashed.push(`${type}/${name}`)
      read[name] = asReplacing(named, named['keyTemplate'] ?? config['keyTemplate'])
    }
    providers[type] = read
  }
  if (hashed.length > 0)
    notes.push(
      `Files get names like "name-1a2b3c4d.png" at ${hashed.join(', ')}, so that none replaces another by accident: see "keyTemplate".`,
    )
  return { config: Object.keys(providers).length > 0 ? { ...config, providers } : config, notes, places }
}

/** The folder of a destination in front of the name that renaming gives. */
function withName(options: Json, renaming: unknown): Json {
  const { keyTemplate } = options
  if (typeof renaming !== 'string') return options
  if (renaming === NOT_RENAMED) return { ...options, keyTemplate: keyTemplate ?? STANDARD }
  if (typeof keyTemplate !== 'string') return { ...options, keyTemplate: renaming }
  const name = NAMES.find(one => keyTemplate.endsWith(one))
  if (name === undefined) return options
  return { ...options, keyTemplate: keyTemplate.slice(0, -name.length) + renaming }
}

/** There a file of the same name replaces the earlier one. */
function asReplacing(options: Json, template: unknown): Json {
  if (typeof template !== 'string' || namesContent(template)) return options
  return { ...options, onConflict: 'replace' }
}

/** PicGo's rules for links, which are for all destinations. Of several that match it takes the first one only. */
function readRewriteRules(old: Json, notes: string[]): Json[] {
  const settings = isRecord(old['settings']) ? old['settings'] : {}
  const { rules } = isRecord(settings['urlRewrite']) ? settings['urlRewrite'] : {}
  const usable = (Array.isArray(rules) ? rules : []).flatMap((rule): Json[] => {
    if (!isRecord(rule) || rule['enable'] === false) return []
    const { match, replace, global, ignoreCase } = rule
    if (typeof match !== 'string' || !isPattern(match) || typeof replace !== 'string') {
      notes.push(`"settings.urlRewrite.rules" has a rule that was left out: ${JSON.stringify(match)}.`)
      return []
    }
    const flags = (global === true ? 'g' : '') + (ignoreCase === true ? 'i' : '')
    return [{ from: match, to: replace, ...(flags && { flags }) }]
  })
  if (usable.length > 1)
    notes.push('"settings.urlRewrite.rules": all that match are applied, one after the other.')
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
