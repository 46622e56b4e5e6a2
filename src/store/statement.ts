import type { CompiledQuery } from '../packages/kysely.ts'

/** Stands for a value while a statement is made. */
class Place {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

const PLACES = new Proxy({}, { get: (_, name) => new Place(String(name)) })

/**
 * Compiles a statement once, since that costs more than running it.
 *
 * @param build makes it with what stands for its values
 * @returns the statement with values, which it takes by their names; one that is left out is null
 */
export function prepareStatement<Values extends object>(
  build: (places: Required<Values>) => { compile(): CompiledQuery },
): (values: Values) => CompiledQuery {
  // A place is put where a value of any type goes, and comes back as a parameter.
  const query = build(PLACES as Required<Values>).compile()
  const names = query.parameters.map(one => (one as Place).name as keyof Values)
  return values => ({ ...query, parameters: names.map(name => values[name] ?? null) })
}
