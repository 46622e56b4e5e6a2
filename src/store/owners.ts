import type { StoreAccess } from './access.ts'
import type { OwnerStore } from './contract.ts'

/** The processes that use a database. */
export function createOwnerStore({ read, write }: StoreAccess): OwnerStore {
  return {
    beat: (owner, now) =>
      write(async db => {
        await db
          .insertInto('owners')
          .values({ id: owner, seen_at: now })
          .onConflict(conflict => conflict.column('id').doUpdateSet({ seen_at: now }))
          .execute()
      }),
    removeOwner: owner =>
      write(async db => {
        await db.deleteFrom('owners').where('id', '=', owner).execute()
      }),
    owners: () =>
      read(async db => {
        const busy = await db
          .selectFrom('jobs')
          .select(['owner as id', eb => eb.fn.max('created_at').as('seen_at')])
          .where('finished_at', 'is', null)
          .where('state', 'in', ['uploading', 'finalizing'])
          .groupBy('owner')
          .execute()
        const holding = await db
          .selectFrom('key_holds')
          .select(['owner as id', eb => eb.fn.max('held_at').as('seen_at')])
          .groupBy('owner')
          .execute()
        const alive = await db.selectFrom('owners').selectAll().execute()
        return new Map([...busy, ...holding, ...alive].map(row => [row.id, row.seen_at]))
      }),
  }
}
