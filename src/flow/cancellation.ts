import { setMaxListeners } from 'node:events'

// A time limit for some work is `beginTimeLimit`. Not `AbortSignal.any` over `AbortSignal.timeout`: Node 20 collects a timeout
// that nothing else refers to, and the signal made of it never fires.

/** A controller whose signal may have any number of listeners. */
export function createCanceller(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/**
 * Calls a function when a signal is aborted, or at once if it is already.
 *
 * @returns removes the listener; to be called when the work ends
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

/** Returns the result of work, or fails with the reason of the signal as soon as it is aborted. The work is not stopped. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopListening = () => {}
  const gone = new Promise<never>((_, reject) => {
    stopListening = onAbort(signal, () => reject(signal.reason))
  })
  return Promise.race([gone, work]).finally(stopListening)
}
