import { type ChildProcess, spawn } from 'node:child_process'
import { systemCode, UploadError } from '../errors.ts'
import { inOwnGroup, killGroup, systemFolder } from '../flow/run-program.ts'

/** Characters of a tool's error output that are kept. */
const STDERR_CHARACTERS = 300

/** A program that reads the clipboard. */
export interface Tool {
  /** Name of the program, looked up in `PATH`. */
  readonly program: string
  /** Advice if it is missing: `install the package "xclip"`. */
  readonly remedy: string
  /** Advice if it fails. */
  readonly check: string
}

/** One attempt to read the clipboard. */
export interface ClipboardReading {
  readonly env: NodeJS.ProcessEnv
  readonly maxBytes: number
  readonly signal: AbortSignal | undefined
  /** Time of `performance.now()`, milliseconds. */
  readonly deadline: number
}

export interface ToolOutput {
  /** Exit code, or null if the tool was killed. */
  readonly exitCode: number | null
  readonly stdout: Buffer
  /** Error output, on one line. */
  readonly stderr: string
  /** Whether the tool was stopped because it printed more than `limit` bytes. */
  readonly cut: boolean
}

/**
 * Runs a tool without a shell. If it prints too much or takes too long, kills it and its process group.
 *
 * @param limit maximum standard output, bytes
 * @throws UploadError `source_failed` if the tool is missing, or does not end before the deadline
 */
export async function runTool(
  tool: Tool,
  args: readonly string[],
  limit: number,
  { env, signal, deadline }: ClipboardReading,
): Promise<ToolOutput> {
  signal?.throwIfAborted()
  const child = spawn(tool.program, args, {
    env,
    cwd: systemFolder(),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...inOwnGroup(),
  })
  let stop: (reason: unknown) => void = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = reject
  })
  const timer = setTimeout(() => stop(hung(tool)), Math.max(0, deadline - performance.now()))
  const onAbort = () => stop(signal?.reason)
  signal?.addEventListener('abort', onAbort)
  child.on('error', error => stop(unstartable(tool, error)))
  try {
    return await Promise.race([collect(child, limit), stopped])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    // It has no output if there is no free file descriptor.
    child.stdout?.destroy()
    child.stderr?.destroy()
    killGroup(child.pid)
  }
}

/** Resolves when the tool has ended and closed its output, or has printed more than `limit` bytes. */
function collect(child: ChildProcess, limit: number): Promise<ToolOutput> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    let stderr = ''
    const finish = (exitCode: number | null) => {
      const cut = size > limit
      resolve({ exitCode, stdout: Buffer.concat(chunks).subarray(0, limit), stderr: excerpt(stderr), cut })
    }
    child.stdout?.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) finish(null)
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < STDERR_CHARACTERS) stderr += text
    })
    child.on('close', finish)
  })
}

/** The error for a tool that failed. */
export function toolFailed({ program, check }: Tool, { exitCode, stderr }: ToolOutput): UploadError {
  const end = exitCode === null ? 'was killed' : `ended with status ${exitCode}`
  const said = stderr === '' ? '' : ` (${stderr})`
  return new UploadError(
    'source_failed',
    `Could not read the clipboard: "${program}" ${end}${said}: ${check}.`,
  )
}

function hung({ program }: Tool): UploadError {
  return new UploadError(
    'source_failed',
    `The clipboard did not respond in time, and "${program}" was stopped. Copy the image again.`,
  )
}

function unstartable({ program, remedy }: Tool, cause: Error): UploadError {
  const code = systemCode(cause)
  const message =
    code === 'ENOENT'
      ? `Could not read the clipboard: "${program}" is not on the PATH; ${remedy}.`
      : `Could not read the clipboard: "${program}" could not be started (${code ?? cause.name}).`
  return new UploadError('source_failed', message, { cause })
}

/** URLs are removed, because a client takes the first one in a response for the link of the image. */
function excerpt(text: string): string {
  const line = text.replace(/\s+/g, ' ').replace(/https?:\/\/\S*/gi, '…')
  return line.trim().slice(0, STDERR_CHARACTERS)
}
