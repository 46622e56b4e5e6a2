import { setMaxListeners } from 'node:events'

// A time limit for some work is `beginTimeLimit`. Not `AbortSignal.any` over `AbortSignal.timeout`: Node 20 collects a timeout
// that nothing else refers to, and the signal made of it never fires.

/** A controller whose signal is listened to by everything that is done for a request. */
export function createCanceller(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/**
 * Calls a function once a signal is aborted, at once when it is aborted already.
 *
 * @returns ends that; to be called when the work is over
 */
export function onAbort(signal: AbortSignal, leave: () => void): () => void {
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
  return () => signal.removeEventListener('abort', leave)
}

/** Settles when a signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => void onAbort(signal, resolve))
}

/** What work gives, or at once the reason of the signal; the work then goes on alone. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => reject(signal.reason))
    work.then(resolve, reject).finally(stopListening)
  })
}
