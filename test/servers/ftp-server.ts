/** A running FTP server with one login. */
export interface FtpServer {
  readonly port: number
  readonly username: string
  readonly password: string
  /** Where files may be written. */
  readonly directory: string
  /** That folder for a client: relative to where a login starts, empty when it starts there. */
  readonly folder: string
  /** PEM file with its certificate, for 127.0.0.1, 127.0.0.2 and `localhost`. */
  readonly certFile: string
  /** The ports it takes data on: the first of `PASSIVE_PORTS` in a row. */
  readonly passivePort: number
  /** Ends every connection as a crash would. */
  killSessions(): void
  close(): Promise<void>
}

/** How many ports a server has for data. */
export const PASSIVE_PORTS = 24
/** Both must be free on the ports of a server: the second is where tests put a proxy in front of it. */
export const PASSIVE_HOSTS = ['127.0.0.1', '127.0.0.2']

/** `explicit`: TLS is demanded after AUTH TLS. `optional`: allowed. `implicit`: from the first byte. */
export type FtpTls = 'explicit' | 'optional' | 'implicit'
