import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../json.ts'
import { configName } from '../values.ts'
import { list, member, type Note, section, text } from './json.ts'

/** One saved configuration of an uploader. */
export interface Saved {
  /** Where it stands in the old file. */
  path: string
  name: string
  id: string | undefined
  /** What the uploader itself reads. */
  options: Json
}

/** Bookkeeping that stands among the options. */
const BOOKKEEPING = new Set(['_id', '_configName', '_createdAt', '_updatedAt'])

/**
 * The configurations of one uploader and the one in use. `uploader.<type>` holds them all; `picBed.<type>` is a copy of
 * the active one, and in older files the only one.
 */
export function readSaved(
  type: string,
  picBed: Json,
  uploader: Json,
  note: Note,
): { saved: Saved[]; active: Saved | undefined } {
  const store = section(uploader, type, `uploader.${type}`, note)
  const path = `uploader.${type}.configList`
  const saved = list(store, 'configList', path, note).flatMap((item, index) =>
    readItem(item, `${path}[${index}]`, note),
  )
  const copy = section(picBed, type, `picBed.${type}`, note)
  if (saved.length > 0) return { saved, active: findActive(type, saved, store.defaultId, copy, note) }
  const only = Object.keys(copy).length > 0 ? readItem(copy, `picBed.${type}`, note) : []
  return { saved: only, active: only[0] }
}

/** One of a list, or none where it is no configuration. */
export function readItem(item: unknown, path: string, note: Note): Saved[] {
  if (!isRecord(item)) {
    note(path, 'was left out: it is not an object')
    return []
  }
  const name = readName(item._configName)
  if (name === undefined && item._configName !== undefined) {
    const kind = text(item._configName) === undefined ? 'no text' : 'no name here'
    note(`${path}._configName`, `is ${kind}, so the configuration is called "Default"`)
  }
  return [{ path, name: name ?? 'Default', id: text(item._id), options: readOptions(item) }]
}

/** A name stands in addresses and in messages. */
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
  note: Note,
): Saved | undefined {
  const byId = (id: string | undefined) => saved.find(one => id !== undefined && one.id === id)
  const named = byId(text(defaultId))
  const active = named ?? byId(text(member(copy, '_id'))) ?? saved[0]
  if (named === undefined && defaultId !== undefined && defaultId !== '')
    note(`uploader.${type}.defaultId`, `names no saved configuration, so "${active?.name}" is taken`)
  const options = readOptions(copy)
  if (Object.keys(options).length > 0 && !isDeepStrictEqual(options, active?.options))
    note(
      `picBed.${type}`,
      `was left out: it differs from "${active?.name}" in "uploader.${type}", which is used`,
    )
  return active
}
