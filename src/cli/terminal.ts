import { styleText } from 'node:util'
import type { Context } from '../client/context.ts'
import { showsColours } from '../log-lines.ts'
import { createGrowingMask } from '../mask.ts'
import { plain, toUnicodeEscape } from '../safe-text.ts'

export { oneLine, plain, toJson, toJsonLine } from '../safe-text.ts'

/** What a subcommand may touch of the process. */
export interface Terminal extends Context {
  /** Whether a person looks at standard error. */
  readonly isInteractive: boolean
  /** Whether a person looks at standard output. */
  readonly isOutputSeen: boolean
  /** Whether that person can answer questions. */
  readonly canAsk: boolean
  /** A line on standard output: results only. */
  print(line: string): void
  /** The same of parts, of which some have a style where a person sees them. */
  printParts(parts: readonly Styled[]): void
  /** A line on standard error, unless that line was there already. */
  noteOnce(line: string): void
  /** Aborted at Ctrl-C and its like, which end the process at once where nobody asked for this. */
  untilInterrupted(): AbortSignal
  /** What the command line ends with. */
  exitCode: number
}

/** What a terminal is made of: the process, or what a test has in its place. */
export interface TerminalHost {
  readonly env: Terminal['env']
  readonly platform: NodeJS.Platform
  cwd(): string
  readonly stdin: AsyncIterable<Uint8Array> & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
}

interface Output {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export function createTerminal(
  { env, platform, cwd, stdin, stdout, stderr }: TerminalHost,
  untilInterrupted: Terminal['untilInterrupted'],
): Terminal {
  const print = (line: string) => void stdout.write(`${line}\n`)
  const note = (line: string) => void stderr.write(`${plain(line)}\n`)
  const noted = new Set<string>()
  const isColoured = stdout.isTTY === true && showsColours()
  const paint = (part: Styled) => {
    if (typeof part === 'string') return plain(part)
    return isColoured ? styleText(part.style, plain(part.text), { validateStream: false }) : plain(part.text)
  }
  return {
    ...createGrowingMask(),
    env,
    platform,
    cwd: cwd(),
    isInteractive: stderr.isTTY === true,
    isOutputSeen: stdout.isTTY === true,
    canAsk: stdin.isTTY === true && stderr.isTTY === true,
    stdin,
    print: line => print(plain(line)),
    printParts: parts => print(parts.map(paint).join('')),
    note,
    noteOnce(line) {
      if (!noted.has(line)) note(line)
      noted.add(line)
    },
    untilInterrupted,
    exitCode: 0,
  }
}

/** A piece of a line. */
export type Styled = string | { readonly text: string; readonly style: 'bold' | 'cyan' | 'dim' | 'green' }

/** The options that every subcommand takes. */
export interface CommonOptions {
  config?: string
}

/** One argument as it is typed into the shell of the system. */
export function quote(text: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (platform === 'win32') return `"${text}"`
  if (!/\p{Cc}/u.test(text)) return `'${text.replace(/'/g, "'\\''")}'`
  // Control characters are written in letters, so that the whole stays one line.
  return `$'${text.replace(/['\\]/g, '\\$&').replace(/\p{Cc}/gu, toUnicodeEscape)}'`
}
