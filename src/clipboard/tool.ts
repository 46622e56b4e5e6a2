import { type ExecFileException, execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { UploadError } from '../errors.ts'
import { describeAbsence, systemFolder } from '../flow/run-program.ts'
import { emptyClipboard, imageTooLarge, otherText, TEXT_BYTES } from './content.ts'

/** Characters of a tool's error output that are shown. */
const SHOWN_CHARACTERS = 300

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

const run = promisify(execFile)

/**
 * Runs a tool without a shell. It is killed if it prints too much or takes too long.
 *
 * @param imageBytes maximum length of its output if that is an image. Text has a limit of its own
 * @returns its standard output
 * @throws UploadError `source_failed` if the tool is missing, fails, prints too much text, or does not end before the deadline;
 *   `too_large`
 */
export async function runTool(
  tool: Tool,
  args: readonly string[],
  { env, signal, deadline, maxBytes }: ClipboardReading,
  imageBytes?: number,
): Promise<Buffer> {
  signal?.throwIfAborted()
  const timeout = Math.max(1, Math.ceil(deadline - performance.now()))
  const cwd = systemFolder()
  const limits = {
    timeout,
    killSignal: 'SIGKILL',
    maxBuffer: imageBytes ?? TEXT_BYTES,
    ...(signal && { signal }),
  } as const
  try {
    const options = { env, ...(cwd !== undefined && { cwd }), windowsHide: true, ...limits }
    return (await run(tool.program, args, { ...options, encoding: 'buffer' })).stdout
  } catch (error) {
    signal?.throwIfAborted()
    // `promisify` adds the outputs, unless the program could not be started.
    const failure = error as ExecFileException & { stderr?: Buffer }
    if (String(failure.code) === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
      throw imageBytes === undefined ? otherText() : imageTooLarge(maxBytes)
    throw explain(tool, failure, failure.stderr?.toString() ?? '')
  }
}

function explain({ program, remedy, check, empty }: Tool, failure: ExecFileException, stderr: string) {
  const { code, killed, signal } = failure
  if (killed)
    return new UploadError(
      'source_failed',
      `The clipboard did not respond in time, and "${program}" was stopped. Copy the image again.`,
    )
  if (empty?.test(stderr)) return emptyClipboard()
  // URLs are removed, because a client takes the first one in a response for the link of the image.
  const said = stderr
    .replace(/\s+/g, ' ')
    .replace(/https?:\/\/\S*/gi, '…')
    .trim()
  const end = typeof code === 'number' ? `ended with status ${code}` : `was killed (${signal})`
  const shown = said === '' ? '' : ` (${said.slice(0, SHOWN_CHARACTERS)})`
  const problem =
    typeof code === 'string'
      ? `${describeAbsence([program], code) ?? `could not be started (${code})`}; ${remedy}`
      : `${end}${shown}: ${check}`
  return new UploadError('source_failed', `Could not read the clipboard: "${program}" ${problem}.`, {
    cause: failure,
  })
}
