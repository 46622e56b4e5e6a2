import type { Presence } from '../../flow/presence.ts'
import type { Store } from '../../store/contract.ts'

/** Locks and jobs of this process stay its own as long as it sends heartbeats to the database. */
export interface Lease {
  /** Starts the heartbeats. Resolves when the first one is written. */
  keepAlive(): Promise<void>
  /** Stops the heartbeats, and removes this process from the database. */
  end(): Promise<void>
}

/** @param owner name of this process in the store @param everyMs interval of the heartbeats */
export function createLease(store: Store, owner: string, everyMs: number, now: () => Date): Lease {
  let beating: NodeJS.Timeout | undefined
  const beat = () => store.beat(owner, now().getTime())
  return {
    async keepAlive() {
      if (beating) return
      await beat()
      // It has its own timer, because slow hooks can delay the rounds of housekeeping.
      beating ??= setInterval(() => void beat().catch(() => {}), everyMs).unref()
    },
    async end() {
      if (!beating) return
      clearInterval(beating)
      await store.removeOwner(owner)
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
