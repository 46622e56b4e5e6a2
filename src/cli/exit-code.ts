import { isFailure, type Result } from '../client/result.ts'

/** The exit codes. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  partial: 3,
  unreachable: 4,
  unauthorized: 5,
  interrupted: 130,
} as const

/** The exit code of a command with these results. */
export function exitCodeOf(results: readonly Result[]): number {
  const failed = results.filter(isFailure)
  const has = (code: string) => failed.some(one => one.code === code)
  if (failed.length === 0) return results.some(one => one.finalizationId) ? EXIT.failed : EXIT.done
  if (has('interrupted')) return EXIT.interrupted
  if (failed.length < results.length) return EXIT.partial
  if (has('unauthorized') || has('no_token')) return EXIT.unauthorized
  return has('unreachable') ? EXIT.unreachable : EXIT.failed
}
