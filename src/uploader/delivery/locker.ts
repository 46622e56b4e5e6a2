import { onAbort } from '../../flow/cancellation.ts'
import { poll } from '../../flow/poll.ts'
import type { Stored } from '../../providers/contract.ts'
import type { Store } from '../../store/contract.ts'
import { type End, foldKey } from '../../store/expiry-contract.ts'

/** Locks objects, so that two uploads never store different bytes in one object, and no object is removed during an upload. */
export interface Locker {
  /**
   * Locks an object for some content until the lock is released. While another upload stores the same content in it, this
   * waits. If that upload fails, one of the waiting uploads gets the lock.
   *
   * @param object location and object key. Spellings that are one file on some disks are one object
   * @param content hash of the bytes
   * @returns undefined if it is locked for other content, or under another spelling
   * @throws the reason of the signal when it is aborted meanwhile
   */
  take(object: string, content: string, signal: AbortSignal): Promise<Lock | undefined>
}

export interface Lock {
  /** What another upload of the same content has stored. */
  readonly others: Settled | undefined
  /** Whether another upload has stored the same content, or is storing it. */
  readonly isShared: boolean
  /** Tells the waiting uploads that the content is stored. */
  settle(stored: Settled): void
  /** Later calls have no effect. @param after an abandoned put that may still write to the object; released when it ends */
  release(after?: Promise<unknown>): void
}

/** What was stored, and through which destination. */
export interface Settled extends Stored {
  /** `provider/configName`. Undefined: an earlier upload that is in the history. */
  readonly by: string | undefined
  /** When it expires. */
  readonly end: End
}

/** The locks of one piece of work. `end` releases all of them, so that none is left after an error. */
export interface Locks extends Locker {
  /** Releases them once no `take` is in progress. @param after see `Lock` */
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
  /** Undefined until the content is stored. */
  stored: Settled | undefined
  /** Number of uploads that have the lock: one until the content is stored. */
  holders: number
  readonly waiting: Set<() => void>
}

/** Locks for one process. */
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
        // The waiting uploads count from now on, because this lock may be released before they run.
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
      const spelled = describeContent(object, content)
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
 * Locks for several processes that use one database. A job also locks its objects there until it is saved, which releases
 * them in the same transaction. If an object is being removed, this waits for the end of the removal.
 *
 * @param memory asked first, so that a process never asks the database for a lock that it has itself
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
      const wanted = { object, content: describeContent(object, content), holder: job.id, owner: job.owner }
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
      // The object was removed meanwhile, so what another upload has stored does not exist any more.
      if (hasWaited) return { ...lock, others: undefined }
      return { ...lock, isShared: lock.isShared || held === 'shared' }
    },
  }
}

/** Another spelling of an object counts as other content, because it may or may not be the same file. */
const describeContent = (object: string, content: string) => `${content} ${object}`
