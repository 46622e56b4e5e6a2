import type { Mask } from '../mask.ts'

/** What a client may touch of the process that it runs in. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Working directory. */
  readonly cwd: string
  readonly stdin: AsyncIterable<Uint8Array>
  /** Tells the user something that is not a result, as one line. */
  note(line: string): void
  /** Hides every secret that was learnt. */
  readonly mask: Mask
  /** Has secrets hidden from now on, also in an error that ends the process. */
  learn(secrets: readonly string[]): void
}
