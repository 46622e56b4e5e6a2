import type { Presence } from '../../flow/presence.ts'
import type { Store } from '../../store/contract.ts'

/** What this process holds in the store is its own for as long as it gives signs of life. */
export interface Lease {
  /** Gives signs of life from now on. Done when the first one is given. */
  keepAlive(): Promise<void>
  /** No more signs of life. */
  leave(): Promise<void>
}

/** @param owner name of this process in the store @param everyMs between two signs of life */
export function createLease(store: Store, owner: string, everyMs: number, now: () => Date): Lease {
  let beating: NodeJS.Timeout | undefined
  const beat = () => store.beat(owner, now().getTime())
  return {
    async keepAlive() {
      if (beating) return
      await beat()
      // By a timer of its own: hooks may hold up housekeeping for long.
      beating ??= setInterval(() => void beat().catch(() => {}), everyMs).unref()
    },
    async leave() {
      if (!beating) return
      clearInterval(beating)
      await store.leave(owner)
    },
  }
}

/** Whether the process that began a job or a request has ended, so that it will never finish it. */
export async function isAbandoned(
  { owner, createdAt }: { readonly owner: string; readonly createdAt: number },
  store: Pick<Store, 'owners'>,
  presence: Presence,
): Promise<boolean> {
  return presence.isGone(owner, (await store.owners()).get(owner) ?? createdAt)
}
