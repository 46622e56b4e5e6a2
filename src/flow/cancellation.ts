import { setMaxListeners } from 'node:events'

/** A controller whose signal is listened to by everything that is done for a request. */
export function createCanceller(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** What work gives, or at once the reason of the signal; the work then goes on alone. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      signal.removeEventListener('abort', leave)
      reject(signal.reason)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave)
    work.then(
      value => {
        signal.removeEventListener('abort', leave)
        resolve(value)
      },
      error => {
        signal.removeEventListener('abort', leave)
        reject(error)
      },
    )
  })
}
