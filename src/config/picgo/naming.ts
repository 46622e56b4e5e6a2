import { parseKeyTemplate } from '../../payload/object-key.ts'
import { isRecord, type Json } from '../json.ts'
import { list, type OnNote, sectionOf, text } from './json.ts'

/** Marks destinations at which files keep their own names. */
export const NOT_RENAMED = ''

export interface Naming {
  /** Template of all destinations; undefined if files keep their names, for which our default is used. */
  keyTemplate: string | undefined
  /** Templates of single destinations, by their `_id`; `NOT_RENAMED` if renaming is disabled for only that one. */
  own: Map<string, string>
}

/** The template of "rename by timestamp" in PicGo and PicList. PicGo 2 omits the seconds, without which names can repeat. */
const TIMESTAMP_TEMPLATE = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'

/** Reads the renaming for all destinations (`buildIn.rename`, `settings.autoRename`) and for single ones (`buildIn.list`). */
export function translateNaming(settings: Json, buildIn: Json, note: OnNote): Naming {
  const rename = sectionOf(buildIn, 'rename', 'buildIn.rename', note)
  const keyTemplate = chooseTemplate(settings.autoRename, rename, 'buildIn.rename', note)
  const own = new Map<string, string>()
  for (const [index, entry] of list(buildIn, 'list', 'buildIn.list', note).entries()) {
    const id = isRecord(entry) && text(entry.id)
    if (!isRecord(entry) || !id || (entry.rename === undefined && entry.autoRename === undefined)) continue
    const path = `buildIn.list[${index}].rename`
    const merged = { ...rename, ...sectionOf(entry, 'rename', path, note) }
    const template = chooseTemplate(entry.autoRename ?? settings.autoRename, merged, path, note)
    if (template !== keyTemplate) own.set(id, template ?? NOT_RENAMED)
  }
  return { keyTemplate, own }
}

/** PicList applies the timestamp last, so it wins. */
function chooseTemplate(auto: unknown, rename: Json, path: string, note: OnNote): string | undefined {
  if (auto) return TIMESTAMP_TEMPLATE
  if (!rename.enable) return undefined
  const template = translateFormat(text(rename.format) ?? '{filename}')
  const defect = findDefect(template)
  if (defect === undefined) return template
  note(`${path}.format`, `was ignored: ${defect}`)
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
  try {
    parseKeyTemplate(template)
    return undefined
  } catch (error) {
    return `it ${error instanceof Error ? error.message.split(';')[0] : 'is not a valid template'}`
  }
}
