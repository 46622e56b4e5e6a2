import { isRecord, type Json, membersOf } from '../members.ts'
import { tellsApart } from '../payload/object-key.ts'
import { loadProvider } from '../providers/registry.ts'
import { HASHED_NAME, readPicGo } from '../providers/shared/picgo-options.ts'
import { isRegExp } from './destination.ts'
import { type Translation, translatePicGo } from './picgo/index.ts'
import { NOT_RENAMED } from './picgo/naming.ts'
import { compact } from './picgo/old.ts'
import { configSchema } from './schema.ts'

/** The endings of key templates that providers make from PicGo's options: after a folder, and for hosts without folders. */
const NAMES = [HASHED_NAME, '{filename}{extname}']
const STANDARD = configSchema.shape.keyTemplate.parse(undefined)

export interface Import extends Translation {
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
  const { config, notes, places } = translatePicGo(old)
  const urlRewrite = readRewriteRules(old, notes)
  const providers: Record<string, Json> = {}
  for (const [type, saved] of Object.entries(membersOf(config['providers']))) {
    const { picgo } = (await loadProvider(type)) ?? {}
    if (!picgo) throw new Error(`The provider "${type}" reads no options of PicGo.`)
    const read: Json = {}
    for (const [name, options] of Object.entries(membersOf(saved))) {
      const { keyTemplate, images, mirrors, ...theirs } = membersOf(options)
      const translated = readPicGo(theirs, picgo)
      for (const note of translated.notes) notes.push(`providers.${type}.${name}: ${note}`)
      const own = withName(translated.options, keyTemplate ?? config['keyTemplate'])
      read[name] = compact({ ...own, images, mirrors, urlRewrite })
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

/**
 * Combines the folder of a destination with the name that PicGo's renaming makes. In PicGo and PicList, a new file replaces
 * an existing one of the same name.
 */
function withName(options: Json, renaming: unknown): Json {
  const keyTemplate = combine(options['keyTemplate'], renaming)
  const isReplacing = typeof keyTemplate === 'string' && !tellsApart(keyTemplate)
  return { ...options, ...(isReplacing && { onConflict: 'replace' }), keyTemplate }
}

function combine(keyTemplate: unknown, renaming: unknown): unknown {
  if (typeof renaming !== 'string') return keyTemplate
  if (renaming === NOT_RENAMED) return keyTemplate ?? STANDARD
  if (typeof keyTemplate !== 'string') return renaming
  const name = NAMES.find(one => keyTemplate.endsWith(one))
  return name === undefined ? keyTemplate : keyTemplate.slice(0, -name.length) + renaming
}

/** Reads PicGo's rewrite rules for links, which apply to all destinations. PicGo applies only the first rule that matches. */
function readRewriteRules(old: Json, notes: string[]): Json[] | undefined {
  const { rules } = membersOf(membersOf(old['settings'])['urlRewrite'])
  const usable = (Array.isArray(rules) ? rules : []).flatMap((rule): Json[] => {
    const { match, replace, enable, global, ignoreCase } = membersOf(rule)
    if (!isRecord(rule) || enable === false) return []
    const flags = (global === true ? 'g' : '') + (ignoreCase === true ? 'i' : '')
    if (typeof match === 'string' && match !== '' && isRegExp(match) && typeof replace === 'string')
      return [{ from: match, to: replace, ...(flags && { flags }) }]
    const what = JSON.stringify(match)
    notes.push(`"settings.urlRewrite.rules": the rule ${what} was skipped, because it is not valid.`)
    return []
  })
  if (usable.length > 1)
    notes.push('"settings.urlRewrite.rules": all matching rules are applied in order, not only the first.')
  return usable.length > 0 ? usable : undefined
}
