import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../store/contract.ts'

const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 250

/**
 * Holds a key for some content until the job is written down, so that nobody removes what is stored there meanwhile, in
 * whichever process. A removal that has begun is waited for.
 *
 * @param destination `provider/configName`
 * @returns `taken` when another job has it for other content; `waited` when what was there may be gone
 * @throws the reason of the signal when it is aborted meanwhile
 */
export type Hold = (
  destination: string,
  key: string,
  content: string,
  signal: AbortSignal,
) => Promise<'free' | 'waited' | 'taken'>

/** @param isHeld whether keys of a destination need be held in the store: files go again there, or other servers store there, too */
export function createHold(
  store: Pick<Store, 'holdKey'>,
  job: { readonly id: string; readonly owner: string },
  isHeld: (destination: string) => boolean,
): Hold {
  return async (destination, key, content, signal) => {
    if (!isHeld(destination)) return 'free'
    // Another spelling of the key is another content: it may be the same file there, or may be not.
    const spelled = `${content} ${key}`
    const wanted = { destination, key, content: spelled, holder: job.id, owner: job.owner }
    for (let pause = 0; ; pause = Math.min(pause * 2 || FIRST_POLL_MS, LONGEST_POLL_MS)) {
      await sleep(pause, undefined, { signal }).catch(() => {})
      signal.throwIfAborted()
      const other = await store.holdKey({ ...wanted, now: Date.now() })
      if (!other) return pause === 0 ? 'free' : 'waited'
      const isRemoval = other.content === other.holder
      if (!isRemoval) return 'taken'
    }
  }
}
