import type { RequestHandler } from 'express'
import { messageOf, UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { within } from '../flow/time-limit.ts'
import type { Uploader } from '../uploader/app.ts'
import { type Choices, chooseDestination, type Destination } from '../uploader/destinations.ts'

/** How long the result of a check is reused, so that requests can't load the database. */
const REUSED_MS = 1000
/** Time limit of a check. Probes should wait longer, to get the reason. */
const CHECK_MS = 3000

/**
 * GET /ready: 200 while uploads are accepted, otherwise 503 with the reason. Only a write shows whether the database and the
 * folder of the default destination work: a full disk can be read. Nothing is sent to destinations elsewhere: a failing one is
 * the same for all servers, so that none would be left.
 *
 * @param isStopping whether the graceful shutdown has begun
 */
export function createReadyRoute(
  uploader: Pick<Uploader, 'owner' | keyof Choices<Destination>>,
  isStopping: () => boolean,
): RequestHandler {
  let last: Promise<UploadError | undefined> | undefined

  let folderCheck: Promise<void> | undefined

  async function check(): Promise<UploadError | undefined> {
    const [database, folder] = await Promise.all([
      problemOf(uploader.owner.beat(), 'database of the server'),
      problemOf(checkFolder(), 'folder of the default destination'),
    ])
    return database ?? folder
  }

  /** Of a hanging file system, it waits for the check that runs already: each further one would take a thread. */
  async function checkFolder(): Promise<void> {
    const { id, target, spool } = chooseDestination(uploader)
    if (spool === undefined) return
    const fail = (cause: unknown) => {
      const message = `Could not store files at ${id}: ${messageOf(cause)}`
      throw new UploadError('destination_failed', message, { cause })
    }
    folderCheck ??= target
      .check?.(createCanceller().signal)
      .catch(fail)
      .finally(() => {
        folderCheck = undefined
      })
    await folderCheck
  }

  function checkSometimes() {
    if (last) return last
    const checking = check()
    last = checking
    void checking.then(() => setTimeout(forget, REUSED_MS).unref())
    return checking
  }
  const forget = () => {
    last = undefined
  }

  return async (_req, res) => {
    const problem = isStopping() ? undefined : await checkSometimes()
    // The shutdown may have begun during the check.
    if (isStopping()) throw shuttingDown()
    if (problem) throw problem
    res.json({ success: true, status: 'ready' })
  }
}

/** The status is always 503, also for a full disk. */
async function problemOf(work: Promise<unknown>, what: string): Promise<UploadError | undefined> {
  const tooLong = () => new UploadError('database_unavailable', `The ${what} does not respond in time.`)
  try {
    await within(work, CHECK_MS, tooLong)
    return undefined
  } catch (error) {
    const message = error instanceof UploadError ? error.message : `The ${what} does not work.`
    return new UploadError('database_unavailable', message, { retryAfterS: 5, cause: error })
  }
}

/** The response to requests that a shutdown no longer serves. */
export function shuttingDown(): UploadError {
  const message = 'The server is shutting down. Try again in a moment.'
  return new UploadError('shutting_down', message, { retryAfterS: 5 })
}
