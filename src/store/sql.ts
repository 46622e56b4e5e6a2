/** A statement and its values. The text is the same for SQLite and PostgreSQL, which both take `$1`. */
export interface Sql {
  readonly text: string
  readonly values: readonly Value[]
}

export type Value = string | number | null

/** Runs statements, inside or outside of a transaction. */
export interface Db {
  /** The rows that a statement returns. */
  all<R>(query: Sql): Promise<R[]>
  /** @returns the number of rows that the statement has changed */
  run(query: Sql): Promise<number>
  /** The time of the database, milliseconds since the epoch: several servers may share it, and their clocks differ. */
  now(): Promise<number>
  /** The same, as a part of a statement. It saves PostgreSQL a statement. */
  readonly time: number | Sql
  /** Appended to a `select`, it locks the rows until the transaction ends. Empty for SQLite, where one transaction runs at a time. */
  readonly forUpdate: Raw
  /** The same, without the rows that another transaction has locked. */
  readonly forUpdateSkipLocked: Raw
}

/** Text that becomes part of a statement as it is. It must be a constant of this program. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** The values of an `in`. An empty list matches nothing. */
export class List {
  readonly values: readonly Value[]
  constructor(values: readonly Value[]) {
    this.values = values
  }
}

type Hole = Value | Raw | List | Sql

/** The texts of statements whose holes are all plain values. */
const texts = new WeakMap<TemplateStringsArray, string>()

/** Makes a statement. Every hole is a value that is bound, unless it is a `Raw`, a `List` or another statement. */
export function sql(parts: TemplateStringsArray, ...holes: readonly Hole[]): Sql {
  const isPlain = holes.every(hole => typeof hole !== 'object' || hole === null)
  if (!isPlain) return compose(parts, holes)
  const text = texts.get(parts) ?? parts.reduce((before, part, n) => `${before}$${n}${part}`)
  texts.set(parts, text)
  return { text, values: holes as readonly Value[] }
}

function compose(parts: TemplateStringsArray, holes: readonly Hole[]): Sql {
  const values: Value[] = []
  const bind = (value: Value) => `$${values.push(value)}`
  let text = parts[0] ?? ''
  for (const [n, hole] of holes.entries()) {
    if (hole instanceof Raw) text += hole.text
    else if (hole instanceof List)
      text += hole.values.length === 0 ? 'null' : hole.values.map(bind).join(', ')
    else if (typeof hole === 'object' && hole !== null)
      text += hole.text.replace(/\$(\d+)/g, (_, number) => bind(hole.values[Number(number) - 1] ?? null))
    else text += bind(hole)
    text += parts[n + 1] ?? ''
  }
  return { text, values }
}

/** Joins conditions with `and`. No conditions: always true. */
export function every(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} and ${one}`, sql`1 = 1`)
}
