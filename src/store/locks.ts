import type { StoreAccess } from './access.ts'
import { foldKey } from './expiry-contract.ts'
import type { LockStore } from './lock-contract.ts'
import type { Database, Tables } from './tables.ts'

/**
 * Locks of objects by the jobs and removals of several processes.
 *
 * @param holders jobs that have locks, which their delivery releases
 */
export function createLockStore({ write, lockNames }: StoreAccess, holders: Set<string>): LockStore {
  return {
    async lockObject({ object, content, holder, owner, now }) {
      const name = foldKey(object)
      // This comes first, because a write may succeed without a response. Releasing a lock that does not exist has no effect.
      holders.add(holder)
      return write(async db => {
        await lockNames(db, [name])
        const others = db
          .selectFrom('key_holds')
          .select(['content', 'holder', 'owner'])
          .where('name', '=', name)
          .limit(1)
        const found = await others.where('content', '<>', content).executeTakeFirst()
        if (found) return found
        const same = await others.where('holder', '<>', holder).executeTakeFirst()
        await addLocks(db, [{ name, content, holder, owner, held_at: now }])
        return same && 'shared'
      })
    },

    async unlockObjects(holder, object) {
      await write(db => unlock(db, holder, object))
      if (object === undefined) holders.delete(holder)
    },
  }
}

/** The names that are locked. The others can't be locked before the transaction ends. */
export async function findLocked(
  db: Database,
  names: Iterable<string>,
  lockNames: StoreAccess['lockNames'],
): Promise<Set<string>> {
  // The names are sorted, so that two processes with the same names cause no deadlock.
  const all = [...new Set(names)].sort()
  await lockNames(db, all)
  const locks = await db.selectFrom('key_holds').select('name').where('name', 'in', all).execute()
  return new Set(locks.map(({ name }) => name))
}

type LockRow = Omit<Tables['key_holds'], 'destination'>

export async function addLocks(db: Database, rows: readonly LockRow[]): Promise<void> {
  await db
    .insertInto('key_holds')
    .values(rows.map(row => ({ ...row, destination: '' })))
    .onConflict(conflict => conflict.columns(['holder', 'destination', 'name']).doNothing())
    .execute()
}

export async function unlock(db: Database, holder: string, object?: string): Promise<void> {
  const locks = db.deleteFrom('key_holds').where('holder', '=', holder)
  await (object === undefined ? locks : locks.where('name', '=', foldKey(object))).execute()
}
