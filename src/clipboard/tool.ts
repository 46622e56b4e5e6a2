import { spawn } from 'node:child_process'
import { systemCode, UploadError } from '../errors.ts'
import { inOwnGroup, killGroup, systemFolder } from '../flow/run-program.ts'
import { emptyClipboard } from './content.ts'

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
  /** Its error output if the clipboard is empty. */
  readonly empty?: RegExp
}

/** One attempt to read the clipboard. */
export interface ClipboardReading {
  readonly env: NodeJS.ProcessEnv
  readonly maxBytes: number
  readonly signal: AbortSignal | undefined
  /** Time of `performance.now()`, milliseconds. */
  readonly deadline: number
}

/** The output of a tool may have so many bytes. What is longer is the error that `tooLong` makes of its beginning. */
export interface OutputLimit {
  readonly bytes: number
  tooLong(begin: Buffer): UploadError
}

/**
 * Runs a tool without a shell. If it prints too much or takes too long, kills it and its process group.
 *
 * @returns its standard output
 * @throws UploadError `source_failed` if the tool is missing, fails, or does not end before the deadline; that of the limit
 */
export async function runTool(
  tool: Tool,
  args: readonly string[],
  { bytes, tooLong }: OutputLimit,
  { env, signal, deadline }: ClipboardReading,
): Promise<Buffer> {
  signal?.throwIfAborted()
  const child = spawn(tool.program, args, {
    env,
    cwd: systemFolder(),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...inOwnGroup(),
  })
  const chunks: Buffer[] = []
  let [size, stderr] = [0, '']
  let onAbort = () => {}
  let timer: NodeJS.Timeout | undefined
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      timer = setTimeout(() => reject(hung(tool)), Math.max(0, deadline - performance.now()))
      onAbort = () => reject(signal?.reason)
      signal?.addEventListener('abort', onAbort)
      child.on('error', error => reject(unstartable(tool, error)))
      child.on('close', resolve)
      child.stdout?.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > bytes) reject(tooLong(Buffer.concat(chunks)))
      })
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        if (stderr.length < STDERR_CHARACTERS) stderr += text
      })
    })
    if (exitCode === 0) return Buffer.concat(chunks)
    throw tool.empty?.test(stderr) ? emptyClipboard() : failed(tool, exitCode, excerpt(stderr))
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    // It has no output if there is no free file descriptor.
    child.stdout?.destroy()
    child.stderr?.destroy()
    killGroup(child.pid)
  }
}

function failed({ program, check }: Tool, exitCode: number | null, stderr: string): UploadError {
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
