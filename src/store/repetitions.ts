import type { Selectable } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import { NOBODY, type Repetition, type RepetitionStore, STORED_STATES } from './contract.ts'
import { readJob } from './jobs.ts'
import { prune } from './prune.ts'
import type { Database, Tables } from './tables.ts'

/** The idempotency keys of a store. */
export function createRepetitionStore({ read, write }: StoreAccess): RepetitionStore {
  const find = async (db: Database, key: string): Promise<Repetition | undefined> => {
    const row = await db.selectFrom('repetitions').selectAll().where('key', '=', key).executeTakeFirst()
    return row && toRepetition(row)
  }

  return {
    reserve: (key, { fingerprint, owner, seed, createdAt }) =>
      write(async db => {
        const { numInsertedOrUpdatedRows } = await db
          .insertInto('repetitions')
          .values({ key, fingerprint, owner, seed: seed ?? null, created_at: createdAt })
          .onConflict(conflict => conflict.column('key').doNothing())
          .executeTakeFirst()
        return (numInsertedOrUpdatedRows ?? 0n) > 0n
      }),

    takeOver: (key, from, to, fingerprint) =>
      write(async db => {
        const locked = await lockJob(db, key)
        const job = locked && (await readJob(db, locked.id))
        if (job && STORED_STATES.includes(job.state)) return false
        const { numUpdatedRows } = await db
          .updateTable('repetitions')
          .set(eb => ({
            owner: to,
            fingerprint,
            // What another request may have stored is not this one's.
            body: eb.case().when('fingerprint', '=', fingerprint).then(eb.ref('body')).else(null).end(),
          }))
          .where('key', '=', key)
          .where('owner', '=', from)
          .where('status', 'is', null)
          .executeTakeFirst()
        return numUpdatedRows > 0n
      }),

    noteClaims: (key, owner, claims) =>
      write(async db => {
        await db
          .updateTable('repetitions')
          .set({ body: JSON.stringify(claims) })
          .where('key', '=', key)
          .where('owner', '=', owner)
          .where('status', 'is', null)
          .execute()
      }),

    answer: (key, owner, { status, body, jobId }) =>
      write(async db => {
        await db
          .updateTable('repetitions')
          .set({ status, body, ...(jobId !== undefined && { job_id: jobId }) })
          .where('key', '=', key)
          .where('owner', '=', owner)
          .execute()
      }),

    release: (key, owner) =>
      write(async db => {
        await db
          .updateTable('repetitions')
          .set({ owner: NOBODY, job_id: null })
          .where('key', '=', key)
          .where('owner', '=', owner)
          .where('status', 'is', null)
          .execute()
      }),

    repetition: key => read(db => find(db, key)),

    expire: (key, before) =>
      write(async db => {
        await db.deleteFrom('repetitions').where('key', '=', key).where('created_at', '<', before).execute()
      }),

    pruneRepetitions: async before => void (await prune(write, 'repetitions', before)),
  }
}

/**
 * Holds the job of a key once nobody is writing it any more: a process may be killed while the database commits what it
 * delivered. A change that changes nothing waits for that in every database; reading doesn't.
 */
function lockJob(db: Database, key: string): Promise<{ id: string } | undefined> {
  return db
    .updateTable('jobs')
    .set(eb => ({ owner: eb.ref('owner') }))
    .where('id', '=', eb => eb.selectFrom('repetitions').select('job_id').where('key', '=', key))
    .returning('id')
    .executeTakeFirst()
}

function toRepetition(row: Selectable<Tables['repetitions']>): Repetition {
  const { status, body } = row
  return {
    fingerprint: row.fingerprint,
    owner: row.owner,
    createdAt: row.created_at,
    jobId: row.job_id ?? undefined,
    seed: row.seed ?? undefined,
    claims: status === null && body !== null ? JSON.parse(body) : [],
    answer: status !== null && body !== null ? { status, body, jobId: row.job_id ?? undefined } : undefined,
  }
}
