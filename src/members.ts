/** The members of an external object. Their values are not validated. */
export type Members = Readonly<Record<string, unknown>>

/** Whether a value is an object or an array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}

/** The members of an object; empty for any other value. */
export function membersOf(value: unknown): Members {
  return isObject(value) ? value : {}
}

/** A value inside an external object: `memberAt(event, 'issue', 'number')`. Undefined if there is none. */
export const memberAt = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce((inner, name) => membersOf(inner)[name], value)

/** The names of a table that is defined in this program. The cast is safe, because such a table has no untyped members. */
export function keysOf<Table extends object>(table: Table): (keyof Table & string)[] {
  return Object.keys(table) as (keyof Table & string)[]
}

/** The path of a member, such as `auth.keys[0].name`. A name without a letter would look like a part of the path. */
export function at(path: string, member: PropertyKey): string {
  const name = String(member)
  if (typeof member === 'number') return `${path}[${name}]`
  if (/^[.\s]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === '' ? name : `${path}.${name}`
}

/** The path of a value, by the names and numbers that lead to it. */
export const pathOf = (steps: readonly PropertyKey[]): string => steps.reduce<string>(at, '')

/** An object of a configuration that has not been checked. */
export type Json = Record<string, unknown>

/** Whether a value is an object that is not an array. */
export function isRecord(value: unknown): value is Json {
  return isObject(value) && !Array.isArray(value)
}

/** The value that a text from others has as JSON. Undefined if it is something else. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
