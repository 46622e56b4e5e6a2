import { isRecord, type Json } from '../json.ts'

/** Records what could not be imported. `path` is a path in the old file, `what` the rest of the sentence. */
export type OnNote = (path: string, what: string) => void

/** A member of the object itself, so that an uploader called "constructor" finds nothing inherited. */
export function member(parent: Json, name: string): unknown {
  return Object.hasOwn(parent, name) ? parent[name] : undefined
}

/** The object under `name`; an empty one if it is absent or, with a note, not an object. */
export function sectionOf(parent: Json, name: string, path: string, note: OnNote): Json {
  const value = member(parent, name)
  if (isRecord(value)) return value
  if (value !== undefined) note(path, 'was ignored: it is not an object')
  return {}
}

/** The array under `name`; an empty one if it is absent or, with a note, not an array. */
export function list(parent: Json, name: string, path: string, note: OnNote): unknown[] {
  const value = member(parent, name)
  if (Array.isArray(value)) return value
  if (value !== undefined) note(path, 'was ignored: it is not a list')
  return []
}

/** A trimmed string; undefined if it is empty or not a string. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** The object without members that are undefined. */
export function compact(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}

/** Replaces `${` with `$${` in every string, because it is plain text in files of PicGo and a variable in ours. */
export function escapeVariables<T>(value: T): T
export function escapeVariables(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', '$$$${')
  if (Array.isArray(value)) return value.map(escapeVariables)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escapeVariables(item)]))
}
