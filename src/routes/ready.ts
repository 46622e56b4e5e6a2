import type { RequestHandler } from 'express'
import { UploadError } from '../errors.ts'
import { within } from '../flow/time-limit.ts'
import type { Uploader } from '../uploader/index.ts'

/** How long the result of a check is reused, so that requests can't load the database. */
const REUSED_MS = 1000
/** Time limit of a check. Probes should wait longer, to get the reason. */
const CHECK_MS = 3000

/**
 * GET /ready: 200 while uploads are accepted, otherwise 503 with the reason. Only a write shows whether the database works: a
 * full disk can be read. The destinations are open as long as the server runs, and nothing is sent to them: a failing one is
 * the same for all servers, so that none would be left.
 *
 * @param isStopping whether the graceful shutdown has begun
 */
export function createReadyRoute(
  { store, finalizer }: Pick<Uploader, 'store' | 'finalizer'>,
  isStopping: () => boolean,
): RequestHandler {
  let last: Promise<UploadError | undefined> | undefined

  async function check(): Promise<UploadError | undefined> {
    try {
      await within(store.beat(finalizer.owner, Date.now()), CHECK_MS, tooLong)
      return undefined
    } catch (error) {
      // Always 503, also for a full disk.
      const message =
        error instanceof UploadError ? error.message : 'The database of the server does not work.'
      return new UploadError('store_unavailable', message, { retryAfterS: 5, cause: error })
    }
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

function tooLong(): UploadError {
  const message = 'The database of the server does not respond in time.'
  return new UploadError('store_unavailable', message)
}

/** The response to requests that a shutdown no longer serves. */
export function shuttingDown(): UploadError {
  const message = 'The server is shutting down. Try again in a moment.'
  return new UploadError('shutting_down', message, { retryAfterS: 5 })
}
