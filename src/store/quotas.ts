import { sql } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import type {
  QuotaPart,
  QuotaReply,
  QuotaRequest,
  QuotaRule,
  QuotaStore,
  QuotaWindow,
} from './quota-contract.ts'
import type { Database } from './tables.ts'

/** The quotas of a store. */
export function createQuotaStore({ read, write, clock, lockNames }: StoreAccess): QuotaStore {
  return {
    reserveQuota: (owner, requests, slicing) =>
      write(async db => {
        const rules = requests.flatMap(one => one.rules)
        // Sorted, so that two processes with the same clients cause no deadlock.
        await lockNames(db, [...new Set(rules.map(nameOf))].sort())
        if (slicing) await giveBack(db, owner, slicing.returned)
        const now = await clock(db)
        const windows = await readWindows(db, rules, now, owner)
        const replies = requests.map(request => reserve(request, windows))
        const slices = slicing ? slicesOf(replies, windows) : []
        await addReserved(db, owner, requests, replies, slices)
        if (!slicing) return replies
        return recall(db, owner, requests, replies, slices, windows)
      }),

    returnQuota: (owner, parts) => write(db => giveBack(db, owner, parts)),

    recalledQuotas: owner =>
      read(async db => {
        const rows = await db
          .selectFrom('quotas')
          .select(['client', 'window_ms as windowMs', 'starts_at as startsAt'])
          .where('owner', '=', owner)
          .where('wanted_at', '>', 0)
          .execute()
        return rows
      }),

    quotaWindows: rules =>
      read(async db => {
        const windows = await readWindows(db, rules, await clock(db))
        return rules.map(rule => ({ ...windowOf(rule, windows), rule }))
      }),

    quotaRows: () =>
      read(async db => {
        const now = await clock(db)
        const rows = await db
          .selectFrom('quotas')
          .select(['client', 'window_ms', 'starts_at'])
          .select([sumOf('files').as('files'), sumOf('bytes').as('bytes')])
          .where(sql<boolean>`starts_at + window_ms > ${now}`)
          .groupBy(['client', 'window_ms', 'starts_at'])
          .orderBy('client')
          .execute()
        return rows.map(row => ({
          client: row.client,
          windowMs: row.window_ms,
          startsAt: row.starts_at,
          files: Number(row.files),
          bytes: Number(row.bytes),
        }))
      }),

    pruneQuotas: () =>
      write(async db => {
        const now = await clock(db)
        await db.deleteFrom('quotas').where(sql<boolean>`starts_at + window_ms <= ${now}`).execute()
      }),
  }
}

/** A slice is this part of what is left, so that several processes get some. */
const PARTS = 16
/** After a process had no room, no slices are reserved. Longer than any process waits for a recall. */
const SHORTAGE_MS = 5000

/** Windows by the names of their rules. Reservations of one transaction change them. */
type Windows = Map<string, QuotaWindow & WindowState>

interface WindowState {
  readonly isShort: boolean
  /** Whether other processes have reserved a part of it. */
  readonly isReserved: boolean
  /** Whether one of them was asked for what it does not use, and has not replied yet. */
  readonly isRecalled: boolean
}

const nameOf = ({ client, windowMs }: Pick<QuotaRule, 'client' | 'windowMs'>) => `quota ${windowMs} ${client}`

/** @throws Error for a rule whose window was not read */
function windowOf(rule: QuotaRule, windows: Windows): QuotaWindow & WindowState {
  const found = windows.get(nameOf(rule))
  if (!found) throw new Error(`the window of the quota of "${rule.client}" was not read`)
  return found
}

const sumOf = (what: 'files' | 'bytes') =>
  sql<number>`sum(${sql.ref(`used_${what}`)} + ${sql.ref(`reserved_${what}`)})`

const HAS_RESERVED = sql`(reserved_files > 0 or reserved_bytes > 0)`

/**
 * One statement for each window. With PostgreSQL, another process may return its part between two statements: a second one
 * would find neither the room nor that somebody has to reply, and a file that fits would be refused.
 *
 * @param owner the process that reserves; default: none
 */
async function readWindows(
  db: Database,
  rules: readonly QuotaRule[],
  now: number,
  owner = '',
): Promise<Windows> {
  const windows: Windows = new Map()
  const others = sql`owner <> ${owner} and ${HAS_RESERVED}`
  for (const rule of rules) {
    if (windows.has(nameOf(rule))) continue
    const { client, windowMs } = rule
    const startsAt = now - (now % windowMs)
    const row = await db
      .selectFrom('quotas')
      .select([sumOf('files').as('files'), sumOf('bytes').as('bytes')])
      .select(sql<number>`max(abs(wanted_at))`.as('short_at'))
      .select(sql<number>`count(*) filter (where ${others})`.as('reserved'))
      .select(sql<number>`count(*) filter (where ${others} and wanted_at > 0)`.as('recalled'))
      .where('client', '=', client)
      .where('window_ms', '=', windowMs)
      .where('starts_at', '=', startsAt)
      .executeTakeFirst()
    windows.set(nameOf(rule), {
      rule,
      startsAt,
      now,
      files: Number(row?.files ?? 0),
      bytes: Number(row?.bytes ?? 0),
      isShort: Number(row?.short_at ?? 0) > now - SHORTAGE_MS,
      isReserved: Number(row?.reserved ?? 0) > 0,
      isRecalled: Number(row?.recalled ?? 0) > 0,
    })
  }
  return windows
}

function reserve({ rules, bytes }: QuotaRequest, windows: Windows): QuotaReply {
  const before = rules.map(rule => ({ ...windowOf(rule, windows), rule }))
  const isGranted = before.every(
    ({ rule, ...used }) =>
      used.files + 1 <= (rule.files ?? Infinity) && used.bytes + bytes <= (rule.bytes ?? Infinity),
  )
  if (!isGranted) return { isGranted, windows: before }
  const after = before.map(window => ({ ...window, files: window.files + 1, bytes: window.bytes + bytes }))
  for (const window of after)
    windows.set(nameOf(window.rule), { ...windows.get(nameOf(window.rule)), ...window })
  return { isGranted, windows: after }
}

/** Adds what was granted to the rows of a process, one statement for each window. */
async function addReserved(
  db: Database,
  owner: string,
  requests: readonly QuotaRequest[],
  replies: readonly QuotaReply[],
  slices: readonly QuotaPart[],
): Promise<void> {
  const added = new Map<string, QuotaWindow>()
  for (const [n, { isGranted, windows }] of replies.entries()) {
    if (!isGranted) continue
    const bytes = requests[n]?.bytes ?? 0
    for (const window of windows) {
      const before = added.get(nameOf(window.rule))
      const sum = { files: (before?.files ?? 0) + 1, bytes: (before?.bytes ?? 0) + bytes }
      added.set(nameOf(window.rule), { ...window, ...sum })
    }
  }
  for (const { client, windowMs, files, bytes } of slices) {
    const name = nameOf({ client, windowMs })
    const before = added.get(name)
    if (before) added.set(name, { ...before, files: before.files + files, bytes: before.bytes + bytes })
  }
  for (const { rule, startsAt, files, bytes } of added.values())
    await db
      .insertInto('quotas')
      .values({
        client: rule.client,
        window_ms: rule.windowMs,
        starts_at: startsAt,
        owner,
        used_files: 0,
        used_bytes: 0,
        reserved_files: files,
        reserved_bytes: bytes,
        wanted_at: 0,
      })
      .onConflict(conflict =>
        conflict.columns(['client', 'window_ms', 'starts_at', 'owner']).doUpdateSet({
          reserved_files: sql`quotas.reserved_files + excluded.reserved_files`,
          reserved_bytes: sql`quotas.reserved_bytes + excluded.reserved_bytes`,
        }),
      )
      .execute()
}

/** A slice of each window in which something was granted. */
function slicesOf(replies: readonly QuotaReply[], windows: Windows): QuotaPart[] {
  const granted = replies.filter(one => one.isGranted).flatMap(one => one.windows)
  return [...new Set(granted.map(({ rule }) => nameOf(rule)))].flatMap(name => {
    const window = windows.get(name)
    if (!window || window.isShort) return []
    const { rule, startsAt } = window
    const sliceOf = (limit: number | undefined, used: number) =>
      limit === undefined ? 0 : Math.floor((limit - used) / PARTS)
    const [files, bytes] = [sliceOf(rule.files, window.files), sliceOf(rule.bytes, window.bytes)]
    const isUseful = (rule.files === undefined || files > 0) && (rule.bytes === undefined || bytes > 0)
    return isUseful ? [{ client: rule.client, windowMs: rule.windowMs, startsAt, files, bytes }] : []
  })
}

/** Asks other processes for what they don't use, where there was no room. */
async function recall(
  db: Database,
  owner: string,
  requests: readonly QuotaRequest[],
  replies: readonly QuotaReply[],
  slices: readonly QuotaPart[],
  windows: Windows,
): Promise<QuotaReply[]> {
  /** Windows of which others have to say what they don't use. */
  const recalled = new Set<string>()
  for (const [n, { isGranted, windows: full }] of replies.entries()) {
    if (isGranted) continue
    for (const { rule, startsAt, now } of full) {
      const { isReserved, isRecalled } = windowOf(rule, windows)
      const isRecall = requests[n]?.isRecall && isReserved
      if (isRecall || isRecalled) recalled.add(nameOf(rule))
      if (!isRecall) continue
      await sql`update quotas set wanted_at = ${now} where client = ${rule.client} and window_ms = ${rule.windowMs}
        and starts_at = ${startsAt} and owner <> ${owner} and ${HAS_RESERVED}`.execute(db)
    }
  }
  return replies.map((reply, n) => ({
    ...reply,
    ...(n === 0 && { slices }),
    isRecalling: !reply.isGranted && reply.windows.some(({ rule }) => recalled.has(nameOf(rule))),
  }))
}

/** Changes only rows of the process, so that nobody waits for it. */
async function giveBack(db: Database, owner: string, parts: readonly QuotaPart[]): Promise<void> {
  for (const { client, windowMs, startsAt, files, bytes } of parts)
    await sql`update quotas set
        reserved_files = case when reserved_files > ${files} then reserved_files - ${files} else 0 end,
        reserved_bytes = case when reserved_bytes > ${bytes} then reserved_bytes - ${bytes} else 0 end,
        wanted_at = -abs(wanted_at)
      where client = ${client} and window_ms = ${windowMs} and starts_at = ${startsAt} and owner = ${owner}`.execute(
      db,
    )
}
