import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { systemCode, UploadError } from '../errors.ts'
import { onAbort } from '../flow/cancellation.ts'
import type { PictureAnswer, PictureJob } from './job.ts'

/** The build of child.ts, because Node can't run the source. */
const ENTRY = createRequire(import.meta.url).resolve('#picture-process')

/** How long an idle process stays, milliseconds. It takes about 80 MB, and a new one starts within 200 ms. */
const IDLE_MS = 5000

/** Environment variables that it gets: paths of programs, fonts and temporary files. It gets no secrets. */
const PASSED_ON =
  /^(?:PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SystemRoot|windir|(?:LOCAL)?APPDATA|XDG_(?:CACHE|CONFIG|DATA)_\w+|FONTCONFIG_\w+|NODE_OPTIONS|NODE_PATH|LD_LIBRARY_PATH|LD_PRELOAD|MALLOC_\w+)$/i

/** Reads the bytes of a changed image. `extension` is set if the format has changed. */
export type Receive<T> = (bytes: AsyncIterable<Uint8Array>, extension: string | undefined) => Promise<T>

/** Idle processes, each with the function that ends it. */
const idle = new Map<ChildProcess, NodeJS.Timeout>()

/**
 * Has a process change a picture. No thread does: libvips and its libraries can't be stopped (sharp's `timeout` of 1 s let an
 * AVIF of 1500 × 1500 pixels take the 50 s that it needed), and a picture that takes all memory ends the process that it is in. So
 * they run in a process, which is killed when the signal says so. One that did not do its work is not used again.
 *
 * @returns undefined when the picture stays as it is
 * @throws the reason of the signal; UploadError; Error for what can't be read as a picture
 */
export async function changeInProcess<T>(
  job: PictureJob,
  receive: Receive<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  signal.throwIfAborted()
  const child = takeIdle() ?? (await start())
  const kill = () => void child.kill('SIGKILL')
  const stopListening = onAbort(signal, kill)
  try {
    signal.throwIfAborted()
    const answer = await ask(child, job)
    const changed =
      answer.is === 'changed'
        ? await receive(readBytes(outputOf(child), answer.size), answer.extension)
        : undefined
    rest(child)
    return changed
  } catch (error) {
    kill()
    signal.throwIfAborted()
    throw error
  } finally {
    stopListening()
  }
}

async function start(): Promise<ChildProcess> {
  try {
    const child = fork(ENTRY, {
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED_ON.test(name))),
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    })
    child.once('exit', () => forget(child))
    await once(child, 'spawn')
    child.on('error', () => {}) // its exit tells
    return child
  } catch (error) {
    const reason = systemCode(error) ?? String(error)
    throw new UploadError(
      'delivery_failed',
      `The server can't process images: the worker process could not be started (${reason}).`,
      { cause: error },
    )
  }
}

/** Whichever worked last: the others may end. */
function takeIdle(): ChildProcess | undefined {
  const child = [...idle.keys()].at(-1)
  if (!child) return undefined
  forget(child)
  for (const handle of handlesOf(child)) handle?.ref()
  return child
}

/** What rests keeps nobody from ending, and ends with whoever started it. */
function rest(child: ChildProcess): void {
  if (child.killed || !child.connected) return
  for (const handle of handlesOf(child)) handle?.unref()
  idle.set(child, setTimeout(() => child.kill('SIGKILL'), IDLE_MS).unref())
}

function forget(child: ChildProcess): void {
  clearTimeout(idle.get(child))
  idle.delete(child)
}

function outputOf({ stdout }: ChildProcess): Socket {
  if (stdout instanceof Socket) return stdout
  throw new Error('a process for images has a pipe to write to')
}

function handlesOf(child: ChildProcess) {
  return [child, child.channel, outputOf(child)]
}

function ask(
  child: ChildProcess,
  job: PictureJob,
): Promise<Extract<PictureAnswer, { is: 'same' | 'changed' }>> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: string | null) =>
      reject(new Error(`the process that decoded it exited with ${signal ?? code}`))
    child.once('exit', onExit)
    child.once('message', (answer: PictureAnswer) => {
      child.off('exit', onExit)
      if (answer.is === 'failed') reject(new UploadError(answer.code, answer.message))
      else if (answer.is === 'unreadable') reject(new Error(answer.reason))
      else resolve(answer)
    })
    child.send(job, error => error && reject(error))
  })
}

/** @throws Error when the process ends in between */
async function* readBytes(stdout: Socket, size: number): AsyncGenerator<Uint8Array> {
  if (size === 0) return
  let left = size
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    left -= chunk.length
    yield chunk
    if (left <= 0) break
  }
  if (left !== 0) throw new Error('the process that changed it exited')
}
