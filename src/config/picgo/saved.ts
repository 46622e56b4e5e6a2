import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../json.ts'
import { configName } from '../values.ts'
import { list, member, type OnNote, sectionOf, text } from './json.ts'

/** One configuration of an uploader in PicGo, which becomes a destination. */
export interface Saved {
  /** Path in the old file. */
  path: string
  name: string
  id: string | undefined
  /** Options of the uploader. */
  options: Json
}

/** Members that PicGo adds to the options for its own use. */
const BOOKKEEPING = new Set(['_id', '_configName', '_createdAt', '_updatedAt'])

/**
 * Reads the configurations of one uploader, and which is active. `uploader.<type>` holds all of them; `picBed.<type>` is a
 * copy of the active one, and the only one in older files.
 */
export function readSaved(
  type: string,
  picBed: Json,
  uploader: Json,
  note: OnNote,
): { saved: Saved[]; active: Saved | undefined } {
  const store = sectionOf(uploader, type, `uploader.${type}`, note)
  const path = `uploader.${type}.configList`
  const saved = list(store, 'configList', path, note).flatMap((item, index) =>
    readItem(item, `${path}[${index}]`, note),
  )
  const copy = sectionOf(picBed, type, `picBed.${type}`, note)
  if (saved.length > 0) return { saved, active: findActive(type, saved, store.defaultId, copy, note) }
  const only = Object.keys(copy).length > 0 ? readItem(copy, `picBed.${type}`, note) : []
  return { saved: only, active: only[0] }
}

/** Reads one item of a list. Returns an empty list if it is not an object. */
export function readItem(item: unknown, path: string, note: OnNote): Saved[] {
  if (!isRecord(item)) {
    note(path, 'was skipped: it is not an object')
    return []
  }
  const name = readName(item._configName)
  if (name === undefined && item._configName !== undefined) {
    const what = text(item._configName) === undefined ? 'text' : 'a valid name'
    note(`${path}._configName`, `is not ${what}, so the destination is called "Default"`)
  }
  return [{ path, name: name ?? 'Default', id: text(item._id), options: readOptions(item) }]
}

/** The name becomes part of URLs and messages, so it must be valid. */
function readName(value: unknown): string | undefined {
  const name = text(value)
  return name !== undefined && configName.safeParse(name).success && !/\p{Cc}/u.test(name) ? name : undefined
}

function readOptions(item: Json): Json {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !BOOKKEEPING.has(name)))
}

function findActive(
  type: string,
  saved: Saved[],
  defaultId: unknown,
  copy: Json,
  note: OnNote,
): Saved | undefined {
  const byId = (id: string | undefined) => saved.find(one => id !== undefined && one.id === id)
  const named = byId(text(defaultId))
  const active = named ?? byId(text(member(copy, '_id'))) ?? saved[0]
  if (named === undefined && defaultId !== undefined && defaultId !== '')
    note(`uploader.${type}.defaultId`, `does not match a configuration, so "${active?.name}" is used`)
  const options = readOptions(copy)
  if (Object.keys(options).length > 0 && !isDeepStrictEqual(options, active?.options))
    note(
      `picBed.${type}`,
      `was ignored: it differs from "${active?.name}" in "uploader.${type}", which is used`,
    )
  return active
}
