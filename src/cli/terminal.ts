import type { Context } from '../client/context.ts'
import { createGrowingMask } from '../mask.ts'
import { oneLine, plain, toUnicodeEscape } from '../safe-text.ts'

export { oneLine, plain, toJson, toJsonLine } from '../safe-text.ts'

/** The parts of the process that a command may use. */
export interface Terminal extends Context {
  /** Whether standard error is a terminal. */
  readonly isInteractive: boolean
  /** Whether standard output is a terminal. */
  readonly isOutputSeen: boolean
  /** Whether the command can ask questions. */
  readonly canAsk: boolean
  /** Prints a result as a line on standard output. */
  print(line: string): void
  /** Aborted on Ctrl-C and similar signals. Without a call, these signals end the process immediately. */
  untilInterrupted(): AbortSignal
}

/** The process, or its substitute in a test. */
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

export function createTerminal(host: TerminalHost, untilInterrupted: Terminal['untilInterrupted']): Terminal {
  const { env, platform, stdout, stderr } = host
  const secrets = createGrowingMask()
  return {
    ...secrets,
    env,
    platform,
    cwd: host.cwd(),
    isInteractive: stderr.isTTY === true,
    isOutputSeen: stdout.isTTY === true,
    // Node opens standard input when it is first read, which most commands never do.
    get canAsk() {
      return host.stdin.isTTY === true && stderr.isTTY === true
    },
    get stdin() {
      return host.stdin
    },
    print: line => void stdout.write(`${plain(line)}\n`),
    note: line => void stderr.write(`${plain(secrets.mask(line))}\n`),
    maskInJobLog(secret) {
      // A workflow command of GitHub. The runner reads both outputs, and does not show the line.
      if (env['GITHUB_ACTIONS'] === 'true') stderr.write(`::add-mask::${secret.replaceAll('%', '%25')}\n`)
    },
    untilInterrupted,
  }
}

/** Longer work is announced, milliseconds. */
const SLOW_MS = 500

/** Does some work. On a terminal, a line names it if it takes longer than a moment. */
export async function saying<T>(what: string, terminal: Terminal, work: () => Promise<T>): Promise<T> {
  const say = () => terminal.note(oneLine(`${what} …`))
  const timer = terminal.isInteractive ? setTimeout(say, SLOW_MS) : undefined
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}

/** Asks for confirmation. @throws Error without a terminal @param advice what to do then */
export async function confirm(
  message: string,
  advice: string,
  { canAsk }: Pick<Terminal, 'canAsk'>,
): Promise<boolean> {
  if (!canAsk) throw new Error(`Could not ask for confirmation without a terminal. ${advice}`)
  const prompts = await import('@clack/prompts')
  return (await prompts.confirm({ message, initialValue: false, output: process.stderr })) === true
}

/** Quotes an argument for the shell of the system. */
export function quote(text: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (platform === 'win32') return `"${text}"`
  if (!/\p{Cc}/u.test(text)) return `'${text.replace(/'/g, "'\\''")}'`
  // Escapes control characters, so that the argument is one line.
  return `$'${text.replace(/['\\]/g, '\\$&').replace(/\p{Cc}/gu, toUnicodeEscape)}'`
}
