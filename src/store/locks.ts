import type { StoreAccess } from './access.ts'
import { foldKey } from './expiry-contract.ts'
import type { LockStore } from './lock-contract.ts'
import type { Database, Tables } from './tables.ts'

/**
 * The objects that jobs and removals of several processes have locked.
 *
 * @param holders jobs that have locks, which their delivery releases
 */
export function createLockStore({ write, lockNames }: StoreAccess, holders: Set<string>): LockStore {
  return {
    async lockObject({ object, content, holder, owner, now }) {
      const name = foldKey(object)
      // Before it is written: what was written may not be told. To release what is not locked does no harm.
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

/** Of these names those that somebody has locked. None of the others is locked before the transaction is over. */
export async function findLocked(
  db: Database,
  names: Iterable<string>,
  lockNames: StoreAccess['lockNames'],
): Promise<Set<string>> {
  // In one order, so that processes that want the same names don't wait for each other in turn.
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
