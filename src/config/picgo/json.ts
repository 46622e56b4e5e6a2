import { isRecord, type Json } from '../json.ts'

/** Remembers what could not be carried over. `path` is a path in the old file, `what` the rest of the sentence. */
export type Note = (path: string, what: string) => void

/** A member of the object itself, so that an uploader called "constructor" finds nothing inherited. */
export function member(parent: Json, name: string): unknown {
  return Object.hasOwn(parent, name) ? parent[name] : undefined
}

/** The object under `name`; an empty one when it is absent or, with a note, something else. */
export function section(parent: Json, name: string, path: string, note: Note): Json {
  const value = member(parent, name)
  if (isRecord(value)) return value
  if (value !== undefined) note(path, 'was left out: it is not an object')
  return {}
}

/** The array under `name`; an empty one when it is absent or, with a note, something else. */
export function list(parent: Json, name: string, path: string, note: Note): unknown[] {
  const value = member(parent, name)
  if (Array.isArray(value)) return value
  if (value !== undefined) note(path, 'was left out: it is not a list')
  return []
}

/** A string without the blanks around it; undefined when nothing is left or it is no string. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** The object without members that are undefined. */
export function compact(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}

/** Writes `$${` for `${` in every string: what is a variable in our files is plain text in theirs. */
export function escapeVariables(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', '$$$${')
  if (Array.isArray(value)) return value.map(escapeVariables)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escapeVariables(item)]))
}
