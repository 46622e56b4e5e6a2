import { parseKeyTemplate } from '../../payload/object-key.ts'
import { isRecord, type Json } from '../json.ts'
import { list, type Note, section, text } from './json.ts'

/** What stands for the names that files have by themselves. */
export const NOT_RENAMED = ''

export interface Naming {
  /** For all destinations; undefined when files keep their names, which is left to our default. */
  keyTemplate: string | undefined
  /** Templates of single configurations, by their `_id`; `NOT_RENAMED` where renaming is switched off for one alone. */
  own: Map<string, string>
}

/** What the desktop applications' "rename by timestamp" makes. PicGo 2 left the seconds out; with them no name returns. */
const TIMESTAMP_TEMPLATE = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'

/** Reads the renaming of all uploads (`buildIn.rename`, `settings.autoRename`) and of single ones (`buildIn.list`). */
export function translateNaming(settings: Json, buildIn: Json, note: Note): Naming {
  const rename = section(buildIn, 'rename', 'buildIn.rename', note)
  const keyTemplate = chooseTemplate(settings.autoRename, rename, 'buildIn.rename', note)
  const own = new Map<string, string>()
  for (const [index, entry] of list(buildIn, 'list', 'buildIn.list', note).entries()) {
    const id = isRecord(entry) && text(entry.id)
    if (!isRecord(entry) || !id || (entry.rename === undefined && entry.autoRename === undefined)) continue
    const path = `buildIn.list[${index}].rename`
    const merged = { ...rename, ...section(entry, 'rename', path, note) }
    const template = chooseTemplate(entry.autoRename ?? settings.autoRename, merged, path, note)
    if (template !== keyTemplate) own.set(id, template ?? NOT_RENAMED)
  }
  return { keyTemplate, own }
}

/** The timestamp is applied last in PicList and so decides. */
function chooseTemplate(auto: unknown, rename: Json, path: string, note: Note): string | undefined {
  if (auto) return TIMESTAMP_TEMPLATE
  if (!rename.enable) return undefined
  const template = translateFormat(text(rename.format) ?? '{filename}')
  const defect = findDefect(template)
  if (defect === undefined) return template
  note(`${path}.format`, `was left out: ${defect}`)
  return undefined
}

/** PicList adds the extension by itself, takes some placeholders in any case, and `{localFolder}` for its last level. */
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
  if (template.endsWith('/')) return 'it names no file'
  try {
    parseKeyTemplate(template)
    return undefined
  } catch (error) {
    return `it ${error instanceof Error ? error.message.split(';')[0] : 'is no template'}`
  }
}
