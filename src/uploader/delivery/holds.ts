import { poll } from '../../flow/poll.ts'
import type { Store } from '../../store/contract.ts'

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
    let hasWaited = false
    return poll(async () => {
      const other = await store.holdKey({ ...wanted, now: Date.now() })
      if (!other) return hasWaited ? 'waited' : 'free'
      hasWaited = true
      const isRemoval = other.content === other.holder
      return isRemoval ? undefined : 'taken'
    }, signal)
  }
}
