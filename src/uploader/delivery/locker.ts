import { onAbort } from '../../flow/cancellation.ts'
import { poll } from '../../flow/poll.ts'
import type { Stored } from '../../providers/contract.ts'
import type { Store } from '../../store/contract.ts'
import { type End, foldKey } from '../../store/expiry-contract.ts'

/** Locks objects, so that no two uploads store different bytes at one place, and nobody removes what is being stored. */
export interface Locker {
  /**
   * Locks an object for some content until the lock is released. While another upload stores the same content there, that
   * is waited for; when it fails, one of those who wait has the lock.
   *
   * @param object place and key. Spellings that some disks take for one are one object
   * @param content hash of the bytes
   * @returns undefined: somebody has it for other content, or under another spelling
   * @throws the reason of the signal when it is aborted meanwhile
   */
  take(object: string, content: string, signal: AbortSignal): Promise<Lock | undefined>
}

export interface Lock {
  /** What another upload has stored there: the same content. */
  readonly others: Settled | undefined
  /** Whether another upload has stored the same content there, or is at it. */
  readonly isShared: boolean
  /** Says that the content is stored. */
  settle(stored: Settled): void
  /** Ends it. Later calls do nothing. @param after a put that was given up and may still write to the object */
  release(after?: Promise<unknown>): void
}

/** What was stored, and by whom. */
export interface Settled extends Stored {
  /** The destination, `provider/configName`; undefined: an earlier upload that the history knows. */
  readonly by: string | undefined
  /** Until when it is promised. */
  readonly end: End
}

/** The locks of one piece of work. They are released when it is over, whatever else was forgotten. */
export interface Locks extends Locker {
  /** Releases them once no `take` is under way any more. @param after see `Lock` */
  end(after?: Promise<unknown>): Promise<void>
}

export function createLocks(locker: Locker): Locks {
  const taken: Promise<Lock | undefined>[] = []
  return {
    take(...wanted) {
      const lock = locker.take(...wanted)
      taken.push(lock)
      return lock
    },
    async end(after) {
      for (const one of await Promise.allSettled(taken)) {
        if (one.status === 'fulfilled') one.value?.release(after)
      }
    },
  }
}

interface LockEntry {
  readonly content: string
  /** What was stored; undefined until then. */
  stored: Settled | undefined
  /** Those who have it: one until it is stored. */
  holders: number
  readonly waiting: Set<() => void>
}

/** For one process. */
export function createMemoryLocker(): Locker {
  const entries = new Map<string, LockEntry>()

  function wait({ waiting }: LockEntry, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const resume = () => {
        stopListening()
        resolve()
      }
      waiting.add(resume)
      const stopListening = onAbort(signal, () => {
        waiting.delete(resume)
        reject(signal.reason)
      })
    })
  }

  function makeLock(name: string, entry: LockEntry): Lock {
    let isOver = false
    const free = () => {
      const [next] = entry.waiting
      if (next) {
        entry.waiting.delete(next)
        next()
      } else if (--entry.holders === 0) entries.delete(name)
    }
    return {
      others: entry.stored,
      isShared: entry.stored !== undefined,
      settle(stored) {
        entry.stored = stored
        // They have it from now on: whoever stored it may release it before they get to run.
        entry.holders += entry.waiting.size
        for (const resume of entry.waiting) resume()
        entry.waiting.clear()
      },
      release(after) {
        if (isOver) return
        isOver = true
        if (after) void after.then(free, free)
        else free()
      },
    }
  }

  return {
    async take(object, content, signal) {
      const name = foldKey(object)
      const spelled = spell(object, content)
      const found = entries.get(name)
      if (found && found.content !== spelled) return undefined
      const entry = found ?? { content: spelled, stored: undefined, holders: 1, waiting: new Set() }
      entries.set(name, entry)
      if (entry.stored) entry.holders++
      else if (found) await wait(entry, signal)
      return makeLock(name, entry)
    },
  }
}

/**
 * For several processes of one store: a job locks its objects there, too, until it is written down, which gives them back
 * in the same transaction. A removal that has begun is waited for.
 *
 * @param memory asked first, so that a process asks the store for nothing that it has given away itself
 */
export function createStoreLocker(
  store: Pick<Store, 'lockObject'>,
  memory: Locker,
  job: { readonly id: string; readonly owner: string },
): Locker {
  return {
    async take(object, content, signal) {
      const lock = await memory.take(object, content, signal)
      if (!lock) return undefined
      const wanted = { object, content: spell(object, content), holder: job.id, owner: job.owner }
      let hasWaited = false
      const ask = async () => {
        const other = await store.lockObject({ ...wanted, now: Date.now() })
        if (other === undefined || other === 'shared') return other ?? 'free'
        hasWaited = true
        const isRemoval = other.content === other.holder
        return isRemoval ? undefined : 'taken'
      }
      const held = await poll(ask, signal).catch(error => {
        lock.release()
        throw error
      })
      if (held === 'taken') return void lock.release()
      // What was removed meanwhile is gone, whoever had stored it.
      if (hasWaited) return { ...lock, others: undefined }
      return { ...lock, isShared: lock.isShared || held === 'shared' }
    },
  }
}

/** Another spelling of an object is another content: it may be the same file there, or may be not. */
const spell = (object: string, content: string) => `${content} ${object}`
