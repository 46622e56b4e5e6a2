/** What an object holds that came from elsewhere; none of it has been looked at. */
export type Members = Readonly<Record<string, unknown>>

/** Whether it has members: an object or an array. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}

/** The members of an object; of anything else none. */
export function membersOf(value: unknown): Members {
  return isObject(value) ? value : {}
}

/** The names of a table that is written in this program: what is typed holds no others. */
export function keysOf<Table extends object>(table: Table): (keyof Table & string)[] {
  return Object.keys(table) as (keyof Table & string)[]
}
