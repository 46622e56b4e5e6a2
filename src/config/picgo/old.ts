import { isRecord, type Json } from '../../members.ts'

/** Records what could not be imported. `path` is a path in the old file, `what` the rest of the sentence. */
export type OnNote = (path: string, what: string) => void

/** An object of a file of PicGo or PicList. What is not of the expected type is unset, and becomes a note. */
export interface Old {
  readonly path: string
  readonly all: Json
  /** A member of the object itself, so that an uploader called "constructor" finds nothing inherited. */
  get(name: string): unknown
  /** What `parse` returns for a member that is there; `what` is the note if it returns undefined. */
  read<T>(name: string, what: string, parse: (value: unknown) => T | undefined): T | undefined
  /** An object; an empty one if there is none. */
  section(name: string): Old
  /** A list; an empty one if there is none. */
  list(name: string): readonly unknown[]
  /** A trimmed string; undefined, without a note, if it is empty or anything else. */
  text(name: string): string | undefined
  /** A number, which PicList often stores as it was typed; undefined, without a note, if it is not in the range. */
  number(name: string, least: number, most: number): number | undefined
  /** @param name a member, or empty for the object itself */
  note(name: string, what: string): void
}

/** @param path path in the old file; empty for the whole file */
export function openOld(all: Json, path: string, note: OnNote): Old {
  const get = (name: string) => (Object.hasOwn(all, name) ? all[name] : undefined)
  const at = (name: string) => [path, name].filter(part => part !== '').join('.')
  const text = (name: string) => textOf(get(name))
  function read<T>(name: string, what: string, parse: (value: unknown) => T | undefined): T | undefined {
    const value = get(name)
    const result = value === undefined ? undefined : parse(value)
    if (value !== undefined && result === undefined) note(at(name), `was ignored: ${what}`)
    return result
  }
  return {
    path,
    all,
    get,
    read,
    text,
    section: name =>
      openOld(
        read(name, 'it is not an object', value => (isRecord(value) ? value : undefined)) ?? {},
        at(name),
        note,
      ),
    list: name => read(name, 'it is not a list', value => (Array.isArray(value) ? value : undefined)) ?? [],
    number(name, least, most) {
      const value = get(name)
      const number = typeof value === 'number' ? value : Number(text(name) ?? Number.NaN)
      return number >= least && number <= most ? number : undefined
    },
    note: (name, what) => note(at(name), what),
  }
}

/** A trimmed string; undefined if it is empty or not a string. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** The object without members that are undefined. */
export function compact(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}
