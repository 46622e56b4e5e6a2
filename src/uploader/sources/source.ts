import type { Payload } from '../../payload/index.ts'

/** The opened bytes of an input that is not a form part. Reading `body` to its end or leaving the loop closes it. */
export interface Source {
  /** File name at the source, not sanitized. Empty if there is none. */
  readonly name: string
  /** Folders of the file path, outermost first. */
  readonly folders: readonly string[]
  readonly body: AsyncIterable<Uint8Array>
  /** Throws an error if the bytes are those of something else, such as a login page. Called after they were read. */
  readonly check?: (payload: Payload) => void
}
