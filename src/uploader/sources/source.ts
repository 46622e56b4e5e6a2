/** The opened bytes of an input that is not a form part. Reading `body` to its end or leaving the loop closes it. */
export interface Source {
  /** File name as found at the source, not yet cleaned; empty when there is none. */
  readonly name: string
  /** Names of the folders around a file named by its path, outermost first. */
  readonly folders: readonly string[]
  readonly body: AsyncIterable<Uint8Array>
}
