/** An error in a configuration. */
export interface Problem {
  /** Path of the option; empty if the error concerns the whole configuration. */
  readonly path: string
  readonly message: string
}

/** Is called for each error, with the path of the option. */
export type OnProblem = (path: string, message: string) => void

/** Adds each error once. */
export const reportTo =
  (problems: Problem[]): OnProblem =>
  (path, message) => {
    if (!problems.some(one => one.path === path && one.message === message)) problems.push({ path, message })
  }

/** All errors in a configuration, one per line. */
export class ConfigError extends Error {
  /** The errors, without the locations that the message contains. */
  readonly problems: readonly string[]

  /** @param placeOf returns what to change: a line of the file, an environment variable or a flag */
  constructor(
    file: string | undefined,
    problems: readonly Problem[],
    placeOf: (path: string) => string | undefined = () => undefined,
  ) {
    const lines = problems.map(({ path, message }) => (path ? `${path}: ${message}` : message))
    const placed = problems.map(({ path, message }, index) => {
      // A message about a file of PicGo begins with the path in that file.
      const place = placeOf(path || (/^"([^"]*)"/.exec(message)?.[1] ?? ''))
      return place === undefined ? `  ${lines[index]}` : `  ${lines[index]} (${place})`
    })
    super([`Could not load ${file ?? 'the configuration'}:`, ...placed].join('\n'))
    this.name = 'ConfigError'
    this.problems = lines
  }
}
