import type { Stored, Target } from '../providers/contract.ts'

/** How a destination is reached: over a port of 127.0.0.1, or over another one by way of something in between. */
export interface FarEnd {
  /** Of the true server, on 127.0.0.1. */
  readonly port: number
  /** The same destination by way of another port of 127.0.0.1. */
  open(port: number): Target | Promise<Target>
}

/** A destination of the same server behind a connection that can be cut. */
export interface Breakable {
  target: Target
  /** From now on every connection is cut as soon as this many bytes have gone to the destination over it. */
  cutAfter(bytes: number): void
  /** Lets everything through again. */
  mend(): void
}

/** What some kind of destination cannot have. Whoever declares one says why; the report shows it. */
export type Absence =
  /** nothing is secret, so nothing can be refused or given away */
  | 'credentials'
  /** no connection to lose */
  | 'connection'
  /** the destination makes up the names of objects: keys mean nothing to it, nothing is replaced */
  | 'names'
  /** files of 0 bytes are refused */
  | 'emptyFiles'
  /** files of `largeBytes` are refused, or cannot be sent in pieces */
  | 'largeFiles'
  /** its answers say nothing but a status */
  | 'proof'
  /** it speaks no HTTP, so no web page can answer in its place */
  | 'http'

export interface ContractSetup {
  /** Of the configuration, for messages. Default: that of `openProvider`. */
  name?: string
  target: Target
  /** Reads back what `put` answered, as a visitor would. */
  fetch(stored: Stored): Promise<Buffer>
  /** Everything in the options that nobody may see again. */
  secrets: readonly string[]
  /** The same destination with credentials it refuses; needed unless `without.credentials`. */
  withBadCredentials?(): Target | Promise<Target>
  /** Needed unless `without.connection`. */
  breakable?(): Breakable | Promise<Breakable>
  /** Needed unless `without.connection`. Default: `forgeable`. */
  farEnd?: FarEnd
  /** A way by which answers can be forged. Needed unless `without.http`. */
  forgeable?: FarEnd
  /**
   * Size of the large files, a multiple of 64 KiB. Default: 8 MiB. From 64 MiB on the memory that a put holds is measured,
   * which takes seconds.
   */
  largeBytes?: number
  /** Why something does not apply, as a phrase: `{ credentials: 'a folder has none' }`. */
  without?: Partial<Record<Absence, string>>
  /** Ends what `setup` started. The suite has closed the target before. */
  close(): Promise<void>
}
