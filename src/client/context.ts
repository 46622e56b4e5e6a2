import type { Mask } from '../mask.ts'

/** The parts of the process that a client may use. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Working directory. */
  readonly cwd: string
  readonly stdin: AsyncIterable<Uint8Array>
  /** Prints a line that is not a result, without secrets. */
  note(line: string): void
  /** Replaces every learnt secret in a text. */
  readonly mask: Mask
  /** Adds secrets to `mask`, which also applies to an error that ends the process. */
  learn(secrets: readonly string[]): void
  /** Makes the CI provider mask a secret in the log of the job, whatever prints it, if it can. @param secret one line */
  maskInJobLog(secret: string): void
}
