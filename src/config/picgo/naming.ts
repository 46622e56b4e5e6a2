import { defectOf, tellsApart } from '../../payload/object-key.ts'
import { HASHED_NAME } from '../../providers/shared/picgo-options.ts'
import { configSchema } from '../schema.ts'
import type { Old } from './old.ts'

/** Marks a destination at which files keep their own names, although others rename them. */
const NOT_RENAMED = ''

/** The key templates that renaming makes. */
export interface Naming {
  /** Template of all destinations; undefined if files keep their names, for which our default is used. */
  readonly general: string | undefined
  /** Templates of single destinations, by their `_id`; `NOT_RENAMED` if renaming is disabled for only that one. */
  readonly own: ReadonlyMap<string, string>
}

/** The template of "rename by timestamp" in PicGo and PicList. PicGo 2 omits the seconds, without which names can repeat. */
const TIMESTAMP_TEMPLATE = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'

/** Reads the renaming for all destinations (`buildIn.rename`, `settings.autoRename`) and for single ones (`buildIn.list`). */
export function readNaming(settings: Old, buildIn: Old, entries: readonly Old[]): Naming {
  const rename = buildIn.section('rename')
  const auto = settings.get('autoRename')
  const general = chooseTemplate(auto, rename)
  const own = entries.flatMap((entry): [string, string][] => {
    const id = entry.text('id')
    if (id === undefined || (entry.get('rename') === undefined && entry.get('autoRename') === undefined))
      return []
    const own = entry.section('rename')
    const template = chooseTemplate(entry.get('autoRename') ?? auto, own.with({ ...rename.all, ...own.all }))
    return template === general ? [] : [[id, template ?? NOT_RENAMED]]
  })
  return { general, own: new Map(own) }
}

/** PicList applies the timestamp last, so it wins. */
function chooseTemplate(auto: unknown, rename: Old): string | undefined {
  if (auto) return TIMESTAMP_TEMPLATE
  if (!rename.get('enable')) return undefined
  const template = translateFormat(rename.text('format') ?? '{filename}')
  const defect = findDefect(template)
  if (defect === undefined) return template
  rename.note('format', `was ignored: ${defect}`)
  return undefined
}

/** PicList adds the extension itself, matches some placeholders case-insensitively, and reads `{localFolder}` as its last level. */
function translateFormat(format: string): string {
  const template = format
    .replace(/\{(str|sha1|sha256)-(\d+)\}/gi, placeholder => placeholder.toLowerCase())
    .replace(/\{localFolder:?(\d*)\}/gi, (_, count: string) => `{localFolder:${Math.max(1, Number(count))}}`)
    .replace(/\/+/g, '/')
    .replace(/^\//, '')
  return template.includes('{extname}') || template.endsWith('/') ? template : `${template}{extname}`
}

function findDefect(template: string): string | undefined {
  if (!/\{(?!extname\})/.test(template)) return 'without a placeholder every file would get the same name'
  if (template.endsWith('/')) return 'it ends with "/" instead of a file name'
  const defect = defectOf(template)
  return defect && `it ${defect.split(';')[0]}`
}

/** The endings of key templates that providers make from PicGo's options: after a folder, and for hosts without folders. */
const ENDINGS = [HASHED_NAME, '{filename}{extname}']
const STANDARD = configSchema.shape.keyTemplate.parse(undefined)

/**
 * Combines the folder of a destination with the name that PicGo's renaming makes. In PicGo and PicList, a new file replaces
 * an existing one of the same name.
 */
export function nameOf(keyTemplate: unknown, renaming: string | undefined) {
  const combined = combine(keyTemplate, renaming)
  const isReplacing = typeof combined === 'string' && !tellsApart(combined)
  return { ...(isReplacing && { onConflict: 'replace' }), keyTemplate: combined }
}

function combine(keyTemplate: unknown, renaming: string | undefined): unknown {
  if (renaming === undefined) return keyTemplate
  if (renaming === NOT_RENAMED) return keyTemplate ?? STANDARD
  if (typeof keyTemplate !== 'string') return renaming
  const ending = ENDINGS.find(one => keyTemplate.endsWith(one))
  return ending === undefined ? keyTemplate : keyTemplate.slice(0, -ending.length) + renaming
}

/** Says at which of these destinations files get other names than from the old program. */
export function noteNames(destinations: readonly { id: string; keyTemplate: unknown }[]): string[] {
  const hashed = destinations.filter(({ keyTemplate }) => `${keyTemplate}`.endsWith(HASHED_NAME))
  if (hashed.length === 0) return []
  return [
    `Files at ${hashed.map(({ id }) => id).join(', ')} get names such as "name-1a2b3c4d.png", so that no file overwrites another. To change that, set "keyTemplate".`,
  ]
}
