import { type Selectable, sql } from '../packages/kysely.ts'
import type { Access } from './access.ts'
import type { HistoryEntry, HistoryStore } from './contract.ts'
import { prune } from './prune.ts'
import type { Tables } from './tables.ts'

/** The history of a store. */
export function createHistoryStore({ read, write, indexBytes }: Access): HistoryStore {
  return {
    history: ({ destination, text, sha256, since, limit }) =>
      read(async db => {
        const isLike = (column: string, pattern: string) =>
          sql<boolean>`lower(${sql.ref(column)}) like lower(${pattern}) escape '\\'`
        let query = db.selectFrom('history').selectAll()
        if (destination !== undefined) {
          const below = isLike('destination', `${escapeLike(destination)}/%`)
          query = query.where(eb => eb.or([eb('destination', '=', destination), below]))
        }
        if (sha256 !== undefined) query = query.where('sha256', '=', sha256)
        if (since !== undefined) query = query.where('time', '>=', since)
        if (text !== undefined) {
          const columns = ['origin', 'key', 'url'].map(column => isLike(column, `%${escapeLike(text)}%`))
          query = query.where(eb => eb.or(columns))
        }
        const rows = await query
          .orderBy('time', 'desc')
          .orderBy('job_id')
          .orderBy('position', 'desc')
          .limit(limit)
          .execute()
        return rows.map(toEntry)
      }),

    async findStored(destination, sha256) {
      await indexBytes()
      return read(async db => {
        const row = await db
          .selectFrom('history')
          .selectAll()
          .where('sha256', '=', sha256)
          .where('destination', '=', destination)
          .orderBy('time', 'desc')
          .limit(1)
          .executeTakeFirst()
        return row && toEntry(row)
      })
    },

    pruneHistory: before => prune(write, 'history', before),
  }
}

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&')
}

export function toEntry(row: Selectable<Tables['history']>): HistoryEntry {
  return {
    time: row.time,
    jobId: row.job_id,
    index: row.position,
    origin: row.origin,
    url: row.url,
    key: row.key,
    size: row.size,
    contentType: row.content_type,
    sha256: row.sha256,
    deleteUrl: row.delete_url ?? undefined,
    destination: row.destination,
    caller: row.caller,
    requestId: row.request_id,
  }
}
