import type { Stored, Target } from '../providers/contract.ts'

/** How to connect to a destination: directly through a port of 127.0.0.1, or through the port of a proxy. */
export interface FarEnd {
  /** Port of the real server on 127.0.0.1. */
  readonly port: number
  /** Opens the same destination through another port of 127.0.0.1. */
  open(port: number): Target | Promise<Target>
}

/** A destination on the same server behind a proxy that can reset connections. */
export interface Breakable {
  target: Target
  /** Resets each connection as soon as it has carried this many bytes to the destination. */
  cutAfter(bytes: number): void
  /** Stops resetting connections. */
  mend(): void
}

/** What a kind of destination may lack. The setup declares the reason, which the test report shows. */
export type Absence =
  /** The destination has no secrets, so no credentials can be rejected or leaked. */
  | 'credentials'
  /** The destination uses no connection. */
  | 'connection'
  /** The destination chooses the names of objects, so that equal object keys replace nothing. */
  | 'names'
  /** The destination rejects files of 0 bytes. */
  | 'emptyFiles'
  /** The destination rejects files of 8 MiB, or they can't be streamed. */
  | 'largeFiles'
  /** Responses of the destination have only a status, which proves nothing. */
  | 'proof'
  /** The destination does not use HTTP, so no web page can respond instead of it. */
  | 'http'

export interface ContractSetup {
  /** Name of the destination, which messages contain. Default: the name that `openProvider` gives. */
  name?: string
  target: Target
  /** Downloads a stored object as a visitor would. */
  fetch(stored: Stored): Promise<Buffer>
  /** All secrets in the options. They must not appear in URLs or messages. */
  secrets: readonly string[]
  /** Opens the same destination with invalid credentials. Required unless `without.credentials` is set. */
  withBadCredentials?(): Target | Promise<Target>
  /** Required unless `without.connection` is set. */
  breakable?(): Breakable | Promise<Breakable>
  /** Required unless `without.connection` is set. Default: `forgeable`. */
  farEnd?: FarEnd
  /** A connection over HTTP on which the suite forges responses. Required unless `without.http` is set. */
  forgeable?: FarEnd
  /** Reasons why tests do not apply, as phrases: `{ credentials: 'a folder has none' }`. */
  without?: Partial<Record<Absence, string>>
  /** Stops the servers that the setup started. The suite has already closed the target. */
  close(): Promise<void>
}
