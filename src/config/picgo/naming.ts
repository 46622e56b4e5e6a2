import { isRecord } from '../../members.ts'
import { parseKeyTemplate } from '../../payload/object-key.ts'
import { type Old, type OnNote, openOld } from './old.ts'

/** Marks destinations at which files keep their own names. */
export const NOT_RENAMED = ''

export interface Naming {
  /** Template of all destinations; undefined if files keep their names, for which our default is used. */
  readonly keyTemplate: string | undefined
  /** Templates of single destinations, by their `_id`; `NOT_RENAMED` if renaming is disabled for only that one. */
  readonly own: ReadonlyMap<string, string>
}

/** The template of "rename by timestamp" in PicGo and PicList. PicGo 2 omits the seconds, without which names can repeat. */
const TIMESTAMP_TEMPLATE = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'

/** Reads the renaming for all destinations (`buildIn.rename`, `settings.autoRename`) and for single ones (`buildIn.list`). */
export function translateNaming(settings: Old, buildIn: Old, note: OnNote): Naming {
  const rename = buildIn.section('rename')
  const auto = settings.get('autoRename')
  const keyTemplate = chooseTemplate(auto, rename)
  const own = new Map<string, string>()
  for (const [index, item] of buildIn.list('list').entries()) {
    const entry = openOld(isRecord(item) ? item : {}, `buildIn.list[${index}]`, note)
    const id = entry.text('id')
    if (id === undefined || !['rename', 'autoRename'].some(name => entry.get(name) !== undefined)) continue
    const { path, all } = entry.section('rename')
    const merged = openOld({ ...rename.all, ...all }, path, note)
    const template = chooseTemplate(entry.get('autoRename') ?? auto, merged)
    if (template !== keyTemplate) own.set(id, template ?? NOT_RENAMED)
  }
  return { keyTemplate, own }
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
  try {
    parseKeyTemplate(template)
    return undefined
  } catch (error) {
    return `it ${error instanceof Error ? error.message.split(';')[0] : 'is not a valid template'}`
  }
}
