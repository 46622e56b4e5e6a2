import type { ProblemOptions } from '../../problem.ts'

/** Why something fails, and what to do. */
export interface Cause extends Pick<ProblemOptions, 'advice' | 'code' | 'retryable'> {
  /** End of a sentence. Default: what the server says. */
  readonly why?: string
}

/** What the codes of a server or of the system mean. */
export type Causes = Readonly<Record<string, Cause>>

/** The rest of a cause if there is no space left. */
export const FULL = { code: 'insufficient_storage', retryable: false } as const

/** @param other cause of an unknown code, which a server may choose */
export function causeOf(causes: Causes, code: string | number, other: Cause = {}): Cause {
  return (Object.hasOwn(causes, code) && causes[code]) || other
}
