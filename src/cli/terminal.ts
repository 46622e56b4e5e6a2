import type { Mask } from '../mask.ts'

/** What a subcommand may touch of the process. Only cli.ts makes one. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Working directory. */
  readonly cwd: string
  /** Whether a person looks at standard error. */
  readonly isInteractive: boolean
  /** Whether that person can answer questions. */
  readonly canAsk: boolean
  readonly stdin: AsyncIterable<Uint8Array>
  /** A line on standard output: results only. */
  print(line: string): void
  /** A line on standard error: everything else. */
  note(line: string): void
  /** Hides every secret that was learnt. */
  readonly mask: Mask
  /** Has secrets hidden from now on, in what ends the process, too. */
  learn(secrets: readonly string[]): void
}

/** The options that every subcommand takes. */
export interface CommonOptions {
  config?: string
}

/** What moves the cursor of a terminal or turns the direction of what follows; line feeds and tabs are not among it. */
export const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** What `upload-server upload` can print. */
export const FORMATS = ['url', 'markdown', 'html', 'bbcode', 'json'] as const

/** The shells whose tab key may know this program. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const

/** The exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130
