import { type ChildProcess, spawn } from 'node:child_process'
import { isAbsolute } from 'node:path'
import { hideSignatures } from '../mask.ts'
import { onAbort } from './cancellation.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface ProgramInput {
  /** The complete environment of the program. */
  readonly env: Environment
  /** Working directory, also for relative paths in its arguments. */
  readonly cwd: string
  /** Standard input. If it fails, the program is killed, so that it does not use incomplete input. */
  readonly input: string | AsyncIterable<Uint8Array>
  /** Kills the program and its process group. */
  readonly signal: AbortSignal
  /** How much of each output is kept, from its end. Characters; default: 8000. */
  readonly keptCharacters?: number
}

export interface ProgramEnd {
  /** Undefined if it was killed. */
  readonly code: number | undefined
  /** How it ended, as the end of a sentence. Undefined for exit code 0. */
  readonly problem: string | undefined
  /** The end of its standard output. */
  readonly stdout: string
  /** The end of its standard error. */
  readonly stderr: string
  /** The end of its standard output and standard error. */
  readonly output: string
  /** Whether it has read all of its input. */
  readonly tookAll: boolean
}

/** How many characters are kept by default, and how many are shown, from the end of the output. */
const KEPT_CHARACTERS = 8000
const SHOWN_CHARACTERS = 500
/** Time to wait for the last output of an ended program, because a child process may keep the pipe open. */
const LAST_WORDS_MS = 200

/**
 * Runs a program without a shell.
 *
 * @throws Error if it can't be started, the error of the input, or the reason of the signal
 */
export function runProgram(
  [program = '', ...args]: readonly string[],
  { env, cwd, input, signal, keptCharacters = KEPT_CHARACTERS }: ProgramInput,
): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const child = spawn(program, args, {
      env,
      cwd,
      ...inOwnGroup(),
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const refuse = (error: Error) => new Error(`it can't be started: ${error.message}`, { cause: error })
    // Without a free file descriptor the child has no pipes, and only emits an error.
    if (child.stdin === undefined) return void child.once('error', error => reject(refuse(error)))
    let [stdout, stderr, output] = ['', '', '']
    let tookAll = false
    let failure: { readonly reason: unknown } | undefined

    const keep = (before: string, text: string) => (before + text).slice(-keptCharacters)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = keep(output, text)
      stderr = keep(stderr, text)
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output = keep(output, text)
      stdout = keep(stdout, text)
    })

    const end = (code: number | null, by: string | null) => {
      stopListening()
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
      const problem = code === 0 ? undefined : by ? `it was killed by ${by}` : `exit code ${code}`
      if (failure) reject(failure.reason)
      else resolve({ code: code ?? undefined, problem, stdout, stderr, output, tookAll })
    }
    const fail = (reason: unknown) => {
      failure ??= { reason }
      killGroup(child.pid)
    }
    const stopListening = onAbort(signal, () => fail(signal.reason))
    child.once('error', error => {
      failure ??= { reason: refuse(error) }
      end(null, null)
    })
    child.once('exit', (code, by) => {
      const timer = setTimeout(end, LAST_WORDS_MS, code, by)
      child.once('close', () => {
        clearTimeout(timer)
        end(code, by)
      })
    })
    child.stdin.on('error', () => {}) // it need not read what it gets
    feed(child, input).then(isWhole => (tookAll = isWhole), fail)
  })
}

/**
 * Options to start a program that `killGroup` can end. Windows has no process groups, and opens a console for a detached
 * child.
 */
export function inOwnGroup(platform: NodeJS.Platform = process.platform) {
  return { detached: platform !== 'win32', windowsHide: true }
}

/** Working directory for system programs. Windows searches it first for the program, so it must be a trusted folder. */
export function systemFolder({ platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process) {
  return platform === 'win32' ? env['SYSTEMROOT'] : undefined
}

/**
 * Kills a program and the child processes of its group, which would keep its pipes open. On Windows, `taskkill` finds them by
 * their parents: https://learn.microsoft.com/windows-server/administration/windows-commands/taskkill
 *
 * @param pid undefined if it was never started
 */
export function killGroup(
  pid: number | undefined,
  { platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process,
): void {
  if (pid === undefined) return
  if (platform !== 'win32') {
    kill(-pid)
    return
  }
  const args = ['/pid', String(pid), '/t', '/f']
  const cwd = systemFolder({ platform, env })
  spawn('taskkill', args, { env, cwd, stdio: 'ignore', windowsHide: true })
    .on('error', () => kill(pid))
    .unref()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

/** @returns whether the program has read everything */
async function feed({ stdin }: ChildProcess, input: ProgramInput['input']): Promise<boolean> {
  if (stdin === null) return false
  const chunks = typeof input === 'string' ? [input] : input
  for await (const chunk of chunks) {
    const isTaken = await new Promise<boolean>(resolve => stdin.write(chunk, error => resolve(!error)))
    if (!isTaken) return false
  }
  stdin.end()
  return true
}

/**
 * The end of an output in one line, without control sequences of terminals and without credentials that tools such as
 * `curl -v` print. @param mask hides secrets
 */
export function tailOf(output: string, mask: (text: string) => string): string {
  const text = hideSignatures(mask(output))
    // The first word may be the rest of a secret that was cut.
    .replace(output.length < KEPT_CHARACTERS ? '' : /^\S{0,7000}/, '')
    .replace(/\u001b\[[0-?]*[ -/]*[@-~]/g, '')
    .replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .trim()
  return text === '' ? '' : `: ${text.slice(-SHOWN_CHARACTERS).trimStart()}`
}

/** Explains why a program can't be started, as the end of a sentence. Undefined for other errors. @param code of the system */
export function describeAbsence(
  [program = '']: readonly string[],
  code: string | undefined,
): string | undefined {
  if (code === 'EACCES')
    return "can't be run: it is not a program, or is not executable. Check it, or run chmod +x"
  if (code !== 'ENOENT') return undefined
  return isAbsolute(program)
    ? 'does not exist, or the interpreter after "#!" in its first line does not'
    : 'is not installed, or not in PATH'
}
