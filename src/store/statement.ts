import type { CompiledQuery } from '../packages/kysely.ts'

/** A placeholder for a value while a statement is built. */
class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

const PLACEHOLDERS = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) })

/**
 * Compiles a statement once, because that costs more than running it.
 *
 * @param build builds the statement with placeholders for its values
 * @returns a function that sets the values by their names; an absent value is null
 */
export function prepareStatement<Values extends object>(
  build: (placeholders: Required<Values>) => { compile(): CompiledQuery },
): (values: Values) => CompiledQuery {
  // Kysely returns each placeholder as a parameter of the compiled statement, in the order of the SQL.
  const query = build(PLACEHOLDERS as Required<Values>).compile()
  const names = query.parameters.map(one => (one as Placeholder).name as keyof Values)
  return values => ({ ...query, parameters: names.map(name => values[name] ?? null) })
}
