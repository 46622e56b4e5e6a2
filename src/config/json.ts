/** An object of a configuration that has not been checked. */
export type Json = Record<string, unknown>

/** An object that is neither null nor an array. */
export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
