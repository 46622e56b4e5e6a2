import { styleText } from 'node:util'
import { showsColours } from '../log-lines.ts'
import { createGrowingMask, type Mask } from '../mask.ts'

/** What a subcommand may touch of the process. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Working directory. */
  readonly cwd: string
  /** Whether a person looks at standard error. */
  readonly isInteractive: boolean
  /** Whether a person looks at standard output. */
  readonly isOutputSeen: boolean
  /** Whether that person can answer questions. */
  readonly canAsk: boolean
  readonly stdin: AsyncIterable<Uint8Array>
  /** A line on standard output: results only. */
  print(line: string): void
  /** The same of parts, of which some have a style where a person sees them. */
  printParts(parts: readonly Part[]): void
  /** A line on standard error: everything else. */
  note(line: string): void
  /** Hides every secret that was learnt. */
  readonly mask: Mask
  /** Has secrets hidden from now on, in what ends the process, too. */
  learn(secrets: readonly string[]): void
  /** Aborted at Ctrl-C and its like, which end the process at once where nobody asked for this. */
  untilInterrupted(): AbortSignal
  /** What the command line ends with. */
  exitCode: number
}

/** What a terminal is made of: the process, or what a test has in its place. */
export interface Host {
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
  { env, platform, cwd, stdin, stdout, stderr }: Host,
  untilInterrupted: Terminal['untilInterrupted'],
): Terminal {
  const print = (line: string) => void stdout.write(`${line}\n`)
  const isColoured = stdout.isTTY === true && showsColours()
  const paint = (part: Part) => {
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
    note: line => void stderr.write(`${plain(line)}\n`),
    untilInterrupted,
    exitCode: 0,
  }
}

/** A piece of a line. */
export type Part = string | { readonly text: string; readonly style: 'bold' | 'cyan' | 'dim' | 'green' }

/** The options that every subcommand takes. */
export interface CommonOptions {
  config?: string
}

/** What moves the cursor of a terminal or turns the direction of what follows; line feeds and tabs are not among it. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** What services that build take for a command in the output of one: `::error::` at the start of a line, `##[error]` anywhere. */
const COMMANDS = /^([^\S\n]*:)(?=:)|#(?=#\w*\[)/gm

/** Text as it may be shown: what a file is called, or a server answers, moves no cursor and commands nobody. */
export function plain(text: string): string {
  return text.replace(CONTROLS, '?').replace(COMMANDS, '$& ')
}

/** What somebody else has said or named, as a part of one line. */
export function oneLine(text: string): string {
  return plain(text.replace(/[\t\n]/g, '?'))
}

/** JSON for people and programs: what `plain` would change is escaped, so that it stays what it is. */
export function toJson(value: unknown): string {
  return escapeJson(JSON.stringify(value, undefined, 2))
}

/** The same as one line. */
export function toJsonLine(value: unknown): string {
  return escapeJson(JSON.stringify(value))
}

function escapeJson(text: string): string {
  return text.replace(CONTROLS, toEscape).replace(/#(?=#\w*\[)/g, toEscape)
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** One argument as it is typed into the shell of the system. */
export function quote(text: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (platform === 'win32') return `"${text}"`
  if (!/\p{Cc}/u.test(text)) return `'${text.replace(/'/g, "'\\''")}'`
  // Control characters are written in letters, so that the whole stays one line.
  return `$'${text.replace(/['\\]/g, '\\$&').replace(/\p{Cc}/gu, toEscape)}'`
}

/** What is said of what Ctrl-C cut short. */
export const INTERRUPTION = 'it was interrupted'

/** The exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130
