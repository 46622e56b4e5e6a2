import type { CompiledQuery } from '../packages/kysely.ts'

/** A placeholder for a value while a statement is built: a property of a row. */
class Placeholder {
  readonly name: string
  readonly row: number
  constructor(name: string, row: number) {
    this.name = name
    this.row = row
  }
}

const placeholdersOf = (row: number) =>
  new Proxy({}, { get: (_, name) => new Placeholder(String(name), row) })

/** Makes a statement for rows of values. An absent value is null. */
export type RowsStatement<Values> = (rows: readonly Values[]) => CompiledQuery

/**
 * Compiles a statement once, because that costs more than running it.
 *
 * @param build builds the statement with placeholders for its values
 * @returns a function that sets the values by their names; an absent value is null
 */
export function prepareStatement<Values extends object>(
  build: (placeholders: Required<Values>) => { compile(): CompiledQuery },
): (values: Values) => CompiledQuery {
  const prepared = prepareRows<Values>(([placeholders = {} as Required<Values>]) => build(placeholders))
  return values => prepared([values])
}

/**
 * The same for a statement with any number of rows, for example an `insert`. It is compiled once for each number.
 *
 * @param build builds the statement with placeholders for the values of each row
 */
export function prepareRows<Values extends object>(
  build: (rows: readonly Required<Values>[]) => { compile(): CompiledQuery },
): RowsStatement<Values> {
  const queries = new Map<number, CompiledQuery>()
  return rows => {
    // Kysely returns each placeholder as a parameter of the compiled statement, in the order of the SQL.
    const query =
      queries.get(rows.length) ??
      build(rows.map((_, row) => placeholdersOf(row) as Required<Values>)).compile()
    queries.set(rows.length, query)
    const parameters = query.parameters.map(one => {
      const { name, row } = one as Placeholder
      return rows[row]?.[name as keyof Values] ?? null
    })
    return { sql: query.sql, query: query.query, queryId: query.queryId, parameters }
  }
}
