import { INTERRUPTION } from './terminal.ts'

/** What became of one file or address of the command line; what is not known is left out. */
export interface Result {
  /** As it was typed, or found in a folder or by a pattern. */
  readonly name: string
  readonly url?: string
  /** Bytes. */
  readonly size?: number
  /** Of the bytes, hex. */
  readonly sha256?: string
  /** Media type. */
  readonly type?: string
  /** Of a picture, pixels. */
  readonly width?: number
  readonly height?: number
  readonly error?: string
  /** Of a failure: as the API names it, or `unreachable`, `no_answer`, `interrupted`. */
  readonly code?: string
  /** It is stored, but a later step failed: what finishes it without uploading again. */
  readonly finalizationId?: string
}

/** What of a command has an exit code of its own. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  partial: 3,
  unreachable: 4,
  unauthorized: 5,
  interrupted: 130,
} as const

export const interruption = (name: string): Result => ({ name, error: INTERRUPTION, code: 'interrupted' })

/** Not stored. What only waits to be finished is none. */
export function isFailure({ error, finalizationId }: Result): boolean {
  return error !== undefined && finalizationId === undefined
}

/** What the results of a command come to. */
export function exitCodeOf(results: readonly Result[]): number {
  const failed = results.filter(isFailure)
  const has = (code: string) => failed.some(one => one.code === code)
  if (failed.length === 0) return results.some(one => one.finalizationId) ? EXIT.failed : EXIT.done
  if (has('interrupted')) return EXIT.interrupted
  if (failed.length < results.length) return EXIT.partial
  if (has('unauthorized')) return EXIT.unauthorized
  return has('unreachable') ? EXIT.unreachable : EXIT.failed
}

/** More files than these that failed for one reason are counted, not named each. */
const MOST_NAMED = 20

/** Why files were not stored, a line for each, or for very many of one reason. */
export function toFailureLines(failed: readonly Result[]): string[] {
  const reasons = new Map<string, string[]>()
  for (const { name, error = '' } of failed) {
    const names = reasons.get(error) ?? []
    names.push(name)
    reasons.set(error, names)
  }
  return [...reasons].flatMap(([error, names]) => {
    if (names.length <= MOST_NAMED) return names.map(name => `${name}: ${error}`)
    return `${names[0]} and ${names.length - 1} others: ${error}`
  })
}
