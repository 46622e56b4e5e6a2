/** The path of a request target. */
export function pathnameOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

/** The parameters of a request target. */
export function parametersOf(target: string): URLSearchParams {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(target) ?? []
  return new URLSearchParams(query)
}
