import { urlOf } from './send.ts'

/** Delay before the first health check, and the maximum delay between two, in milliseconds. */
const FIRST_DELAY = 1000
const MAX_DELAY = 30_000

/**
 * Polls the health check with exponential backoff, and calls back once when the server responds. It polls immediately when
 * the browser reports that the network is back.
 *
 * @param failures how often the connection has already failed; each failure doubles the first delay
 */
export function onReconnect(failures: number, callback: () => void): void {
  let wait = Math.min(FIRST_DELAY * 2 ** failures, MAX_DELAY)
  let isOver = false
  let timer = setTimeout(poll, wait)
  addEventListener('online', poll)

  async function poll(): Promise<void> {
    clearTimeout(timer)
    const isUp = await isServerUp()
    if (isOver) return
    if (isUp) {
      isOver = true
      removeEventListener('online', poll)
      callback()
      return
    }
    wait = Math.min(wait * 2, MAX_DELAY)
    clearTimeout(timer)
    timer = setTimeout(poll, wait)
  }
}

async function isServerUp(): Promise<boolean> {
  try {
    return (await (await fetch(urlOf('heartbeat'), { cache: 'no-store' })).json()).success === true
  } catch {
    return false
  }
}
