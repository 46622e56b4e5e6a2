import { at, isRecord, type Json } from '../../members.ts'
import { textOf } from '../../providers/shared/picgo-options.ts'

/** Records what could not be imported. `path` is a path in the old file, `what` the rest of the sentence. */
type OnNote = (path: string, what: string) => void

/** An object of a file of PicGo or PicList. What is not of the expected type is unset, and becomes a note. */
export interface Old {
  readonly path: string
  readonly all: Json
  /** A member of the object itself, so that an uploader called "constructor" finds nothing inherited. */
  get(name: string): unknown
  /** What `parse` returns for a member that is there; `what` is the note if it returns undefined. */
  read<T>(name: string, what: string, parse: (value: unknown) => T | undefined): T | undefined
  /** The same for trimmed text that is not empty. Other values are unset without a note. */
  readText<T>(name: string, what: string, parse: (text: string) => T | undefined): T | undefined
  /** An object; an empty one if there is none. */
  section(name: string): Old
  /** The objects of a list. */
  list(name: string): Old[]
  /** Trimmed text; undefined, without a note, if it is empty or neither a string nor a number. */
  text(name: string): string | undefined
  /** A number, which PicList often stores as it was typed; undefined, without a note, if it is not in the range. */
  number(name: string, least: number, most: number): number | undefined
  isOn(name: string): boolean
  /** The same place with other members. */
  with(members: Json): Old
  /** @param name a member, or empty for the object itself */
  note(name: string, what: string): void
}

/** @param path path in the old file; empty for the whole file */
export function openOld(all: Json, path: string, onNote: OnNote): Old {
  const get = (name: string) => (Object.hasOwn(all, name) ? all[name] : undefined)
  const note = (name: string, what: string) => onNote(name === '' ? path : at(path, name), what)
  const text = (name: string) => textOf(get(name))
  function read<T>(name: string, what: string, parse: (value: unknown) => T | undefined): T | undefined {
    const value = get(name)
    const result = value === undefined ? undefined : parse(value)
    if (value !== undefined && result === undefined) note(name, `was ignored: ${what}`)
    return result
  }
  return {
    path,
    all,
    get,
    read,
    readText: (name, what, parse) =>
      text(name) === undefined ? undefined : read(name, what, value => parse(textOf(value) ?? '')),
    text,
    note,
    isOn: name => get(name) === true,
    with: members => openOld(members, path, onNote),
    section(name) {
      const value = read(name, 'it is not an object', value => (isRecord(value) ? value : undefined))
      return openOld(value ?? {}, at(path, name), onNote)
    },
    list(name) {
      const items: readonly unknown[] =
        read(name, 'it is not a list', value => (Array.isArray(value) ? value : undefined)) ?? []
      return items.flatMap((item, index) => {
        const place = at(at(path, name), index)
        if (isRecord(item)) return [openOld(item, place, onNote)]
        onNote(place, 'was skipped: it is not an object')
        return []
      })
    },
    number(name, least, most) {
      const number = Number(text(name) ?? Number.NaN)
      return number >= least && number <= most ? number : undefined
    },
  }
}

/** The object without members that are undefined; undefined if none is left. */
export function compact(value: Json): Json | undefined {
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return members.length === 0 ? undefined : Object.fromEntries(members)
}
