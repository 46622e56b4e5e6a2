import type { Selectable } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import { createBatcher } from './batch.ts'
import { type IdempotencyRecord, type IdempotencyStore, NO_OWNER, STORED_STATES } from './contract.ts'
import { readJob } from './jobs.ts'
import { prune } from './prune.ts'
import type { Database, Tables } from './tables.ts'

interface WantedRecord {
  readonly key: string
  row: Selectable<Tables['repetitions']> | undefined
}

/** The idempotency records of a store. */
export function createIdempotencyStore(access: StoreAccess): IdempotencyStore {
  const { read, write } = access
  /** Requests at the same time share a query, because each of them begins with one. */
  const readSoon = createBatcher<WantedRecord>(async all => {
    const keys = all.map(({ key }) => key)
    const rows = await read(db => db.selectFrom('repetitions').selectAll().where('key', 'in', keys).execute())
    for (const one of all) one.row = rows.find(({ key }) => key === one.key)
  })

  return {
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
            // The claims belong to one request. Another one must not find them.
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

    saveResponse: (key, owner, { status, body, jobId }) =>
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
          .set({ owner: NO_OWNER, job_id: null })
          .where('key', '=', key)
          .where('owner', '=', owner)
          .where('status', 'is', null)
          .execute()
      }),

    async idempotencyRecord(key) {
      const wanted: WantedRecord = { key, row: undefined }
      await readSoon(wanted)
      return wanted.row && toRecord(wanted.row)
    },

    expireIdempotencyKey: (key, before) =>
      write(async db => {
        await db.deleteFrom('repetitions').where('key', '=', key).where('created_at', '<', before).execute()
      }),

    pruneIdempotencyRecords: async before => void (await prune(access, 'repetitions', before)),
  }
}

/**
 * Locks the job of an idempotency key, after the last write to it has ended: a process may be killed while the database
 * commits what it delivered. An update that changes nothing waits for that commit in every database. A read does not.
 */
function lockJob(db: Database, key: string): Promise<{ id: string } | undefined> {
  return db
    .updateTable('jobs')
    .set(eb => ({ owner: eb.ref('owner') }))
    .where('id', '=', eb => eb.selectFrom('repetitions').select('job_id').where('key', '=', key))
    .returning('id')
    .executeTakeFirst()
}

function toRecord(row: Selectable<Tables['repetitions']>): IdempotencyRecord {
  const { status, body } = row
  return {
    fingerprint: row.fingerprint,
    owner: row.owner,
    createdAt: row.created_at,
    jobId: row.job_id ?? undefined,
    seed: row.seed ?? undefined,
    claims: status === null && body !== null ? JSON.parse(body) : [],
    response: status !== null && body !== null ? { status, body, jobId: row.job_id ?? undefined } : undefined,
  }
}
