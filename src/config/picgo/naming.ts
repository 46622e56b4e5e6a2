import { defectOf, tellsApart } from '../../payload/object-key.ts'
import { HASHED_NAME } from '../../providers/shared/picgo-options.ts'
import { configSchema } from '../schema.ts'
import type { BuildIn } from './build-in.ts'

/** The template of "rename by timestamp" in PicGo and PicList. PicGo 2 omits the seconds, without which names can repeat. */
const TIMESTAMP_TEMPLATE = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'

/** The key template that renaming makes; undefined if files keep their names. PicList applies the timestamp last, so it wins. */
export function readRenaming({ byTimestamp, section }: BuildIn): string | undefined {
  if (byTimestamp) return TIMESTAMP_TEMPLATE
  const rename = section('rename')
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
 *
 * @param renaming what renaming makes at this destination
 * @param general what it makes in general, which holds unless the destination has a template
 */
export function readNames(keyTemplate: unknown, renaming: string | undefined, general: string | undefined) {
  const combined =
    renaming === undefined ? (keyTemplate ?? (general && STANDARD)) : combine(keyTemplate, renaming)
  const isReplacing = typeof combined === 'string' && !tellsApart(combined)
  return { ...(isReplacing && { onConflict: 'replace' }), keyTemplate: combined }
}

function combine(keyTemplate: unknown, renaming: string): unknown {
  if (typeof keyTemplate !== 'string') return renaming
  const ending = ENDINGS.find(one => keyTemplate.endsWith(one))
  return ending === undefined ? keyTemplate : keyTemplate.slice(0, -ending.length) + renaming
}
