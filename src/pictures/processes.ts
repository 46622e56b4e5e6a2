import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { systemCode, UploadError } from '../errors.ts'
import { onAbort } from '../flow/cancellation.ts'
import { createSlots } from '../flow/slots.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import type { CompareJob, PictureAnswer, PictureJob, PictureResult } from './job.ts'

/** The build of child.ts, because Node can't run the source. */
const ENTRY = createRequire(import.meta.url).resolve('#picture-process')

/** How long an idle process stays, milliseconds. It takes about 80 MB, and a new one starts within 200 ms. */
const IDLE_MS = 5000

/** Environment variables that it gets: paths of programs, fonts and temporary files. It gets no secrets. */
const PASSED_ON =
  /^(?:PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SystemRoot|windir|(?:LOCAL)?APPDATA|XDG_(?:CACHE|CONFIG|DATA)_\w+|FONTCONFIG_\w+|NODE_OPTIONS|NODE_PATH|LD_LIBRARY_PATH|LD_PRELOAD|MALLOC_\w+)$/i

/** Jobs at a time. Each has its own process, which needs up to 8 bytes per pixel, or 135 MB for two screenshots. */
const slots = createSlots(2, Number.POSITIVE_INFINITY)

/** The time for a job was over. */
export class TooLate extends Error {
  /** Whether most of that time passed before its turn. */
  readonly wasQueued: boolean

  constructor(wasQueued: boolean) {
    super('the time for it is over')
    this.wasQueued = wasQueued
  }
}

/** Idle processes, each with the function that ends it. */
const idle = new Map<ChildProcess, NodeJS.Timeout>()

/**
 * Runs a job when no other two are running.
 *
 * @param makeJob is called then, so that a queued job does not hold a copy of its image
 * @param timeout milliseconds, including the time in the queue
 * @throws TooLate; the reason of the signal; UploadError; Error if the image can't be read
 */
export async function runJob(
  makeJob: () => PictureJob | CompareJob | Promise<PictureJob>,
  timeout: number,
  signal: AbortSignal,
): Promise<PictureResult> {
  let begin = Number.POSITIVE_INFINITY
  // A long queue is not a fault of the image.
  const late = () => new TooLate(performance.now() - begin <= timeout / 2)
  const limit = beginTimeLimit(timeout, signal, late)
  try {
    return await slots.run(async () => {
      begin = performance.now()
      return runInProcess(await makeJob(), limit.signal)
    }, limit.signal)
  } finally {
    limit.end()
  }
}

/**
 * Changes or compares images in a separate process instead of a thread, because libvips can't be stopped (an AVIF of 1500 × 1500
 * pixels took 50 s despite sharp's `timeout` of 1 s), and an image that exhausts the memory ends its process. The process is
 * killed when the signal aborts. A process that failed is not used again.
 */
async function runInProcess(job: PictureJob | CompareJob, signal: AbortSignal): Promise<PictureResult> {
  signal.throwIfAborted()
  const child = takeIdle() ?? (await start())
  const kill = () => void child.kill('SIGKILL')
  const stopListening = onAbort(signal, kill)
  try {
    signal.throwIfAborted()
    const result = await ask(child, job)
    rest(child)
    return result
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
    const passedOn = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name))
    const child = fork(ENTRY, {
      // The threads of libvips would otherwise get an arena of memory each.
      env: { MALLOC_ARENA_MAX: '2', ...Object.fromEntries(passedOn) },
      execArgv: ['--expose-gc'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.once('exit', () => forget(child))
    await once(child, 'spawn')
    child.on('error', () => {}) // the `exit` event reports it
    return child
  } catch (error) {
    const reason = systemCode(error) ?? String(error)
    throw new UploadError(
      'destination_failed',
      `The server can't process images: the worker process could not be started (${reason}).`,
      { cause: error },
    )
  }
}

/** Takes the process that was used last, so that the others can time out. */
function takeIdle(): ChildProcess | undefined {
  const child = [...idle.keys()].at(-1)
  if (!child) return undefined
  forget(child)
  child.ref()
  child.channel?.ref()
  return child
}

/** Keeps a process for the next image. It does not keep the server running, and ends after `IDLE_MS`. */
function rest(child: ChildProcess): void {
  if (child.killed || !child.connected) return
  child.unref()
  child.channel?.unref()
  idle.set(child, setTimeout(() => child.kill('SIGKILL'), IDLE_MS).unref())
}

function forget(child: ChildProcess): void {
  clearTimeout(idle.get(child))
  idle.delete(child)
}

function ask(child: ChildProcess, job: PictureJob | CompareJob): Promise<PictureResult> {
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
