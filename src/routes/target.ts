/** The path of a request target. */
export function pathnameOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

const NO_PARAMETERS = new URLSearchParams()

/** The parameters of a request target, to be read only. */
export function parametersOf(target: string): URLSearchParams {
  const [, query] = /^[^?#]*\?([^#]*)/.exec(target) ?? []
  return query === undefined ? NO_PARAMETERS : new URLSearchParams(query)
}
