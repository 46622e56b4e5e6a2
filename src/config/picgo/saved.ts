import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../../members.ts'
import { configName } from '../values.ts'
import { type Old, type OnNote, openOld, textOf } from './old.ts'

/** One configuration of an uploader in PicGo, which becomes a destination. */
export interface Saved {
  /** Path in the old file. */
  readonly path: string
  readonly name: string
  readonly id: string | undefined
  /** Options of the uploader. */
  readonly options: Json
}

/** Members that PicGo adds to the options for its own use. */
const BOOKKEEPING = new Set(['_id', '_configName', '_createdAt', '_updatedAt'])

/**
 * Reads the configurations of one uploader, and which is active. `uploader.<type>` holds all of them; `picBed.<type>` is a
 * copy of the active one, and the only one in older files.
 */
export function readSaved(
  type: string,
  picBed: Old,
  uploader: Old,
  note: OnNote,
): { saved: Saved[]; active: Saved | undefined } {
  const store = uploader.section(type)
  const saved = store
    .list('configList')
    .flatMap((item, index) => readItem(item, `${store.path}.configList[${index}]`, note))
  const copy = picBed.section(type)
  if (saved.length > 0) return { saved, active: findActive(saved, store, copy, picBed, type) }
  const only = Object.keys(copy.all).length > 0 ? readItem(copy.all, copy.path, note) : []
  return { saved: only, active: only[0] }
}

/** Reads one item of a list. Returns an empty list if it is not an object. */
export function readItem(item: unknown, path: string, note: OnNote): Saved[] {
  if (!isRecord(item)) {
    note(path, 'was skipped: it is not an object')
    return []
  }
  const old = openOld(item, path, note)
  const text = old.text('_configName')
  const isValid = text !== undefined && configName.safeParse(text).success && !/\p{Cc}/u.test(text)
  if (!isValid && old.get('_configName') !== undefined) {
    const what = text === undefined ? 'text' : 'a valid name'
    old.note('_configName', `is not ${what}, so the destination is called "Default"`)
  }
  return [{ path, name: isValid ? text : 'Default', id: textOf(item._id), options: readOptions(item) }]
}

function readOptions(item: Json): Json {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !BOOKKEEPING.has(name)))
}

function findActive(
  saved: readonly Saved[],
  store: Old,
  copy: Old,
  picBed: Old,
  type: string,
): Saved | undefined {
  const byId = (id: string | undefined) => saved.find(one => id !== undefined && one.id === id)
  const defaultId = store.get('defaultId')
  const named = byId(textOf(defaultId))
  const active = named ?? byId(copy.text('_id')) ?? saved[0]
  if (named === undefined && defaultId !== undefined && defaultId !== '')
    store.note('defaultId', `does not match a configuration, so "${active?.name}" is used`)
  const options = readOptions(copy.all)
  if (Object.keys(options).length > 0 && !isDeepStrictEqual(options, active?.options))
    picBed.note(type, `was ignored: it differs from "${active?.name}" in "uploader.${type}", which is used`)
  return active
}
