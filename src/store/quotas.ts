import type { QuotaRule, QuotaWindow } from './contract.ts'
import { type Db, sql } from './sql.ts'

/** Amount that an upload has reserved in one window. */
export interface Reserved {
  readonly client: string
  readonly windowMs: number
  readonly startsAt: number
  readonly files: number
  readonly bytes: number
}

const startOf = (now: number, windowMs: number) => now - (now % windowMs)

/** A file that counts for quotas. */
interface Counted {
  readonly index: number
  /** Bytes. */
  readonly size: number
}

/**
 * Takes what fits of the windows of several quotas, in the order of the files. A file takes of all quotas or of none.
 *
 * @returns what was taken of each window, and by index the first window that has no room for a file
 */
export async function reserve(
  db: Db,
  rules: readonly QuotaRule[],
  files: readonly Counted[],
): Promise<{ readonly taken: readonly Reserved[]; readonly full: ReadonlyMap<number, QuotaWindow> }> {
  const full = new Map<number, QuotaWindow>()
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  const windows = await count(db, rules, files.length, bytes)
  let used = { files: 0, bytes: 0 }
  for (const { index, size } of files) {
    const before = windows.map(one => ({
      ...one,
      files: one.files - files.length + used.files,
      bytes: one.bytes - bytes + used.bytes,
    }))
    const tooFull = before.find(({ rule, ...window }) => !hasRoom(rule, window, size))
    if (tooFull) full.set(index, tooFull)
    else used = { files: used.files + 1, bytes: used.bytes + size }
  }
  const toReserved = (part: { files: number; bytes: number }) =>
    windows.map(({ rule: { client, windowMs }, startsAt }) => ({ client, windowMs, startsAt, ...part }))
  await giveBack(db, toReserved({ files: files.length - used.files, bytes: bytes - used.bytes }))
  return { taken: toReserved(used), full }
}

/** Whether a window has room for one more file. */
export function hasRoom(
  { files = Infinity, bytes = Infinity }: QuotaRule,
  used: { readonly files: number; readonly bytes: number },
  size: number,
): boolean {
  return used.files + 1 <= files && used.bytes + size <= bytes
}

/** Counts files whether they fit or not. @returns the windows with them */
export async function count(
  db: Db,
  rules: readonly QuotaRule[],
  files: number,
  bytes: number,
): Promise<QuotaWindow[]> {
  const now = await db.now()
  const windows: QuotaWindow[] = []
  for (const rule of rules) {
    const startsAt = startOf(now, rule.windowMs)
    const rows = await db.all<{ files: number; bytes: number }>(
      sql`insert into quotas (client, window_ms, starts_at, files, bytes)
        values (${rule.client}, ${rule.windowMs}, ${startsAt}, ${files}, ${bytes})
        on conflict (client, window_ms, starts_at) do update
        set files = quotas.files + excluded.files, bytes = quotas.bytes + excluded.bytes returning files, bytes`,
    )
    for (const used of rows) windows.push({ rule, startsAt, now, ...used })
  }
  return windows
}

/** Gives back what was taken and is not used. */
export async function giveBack(db: Db, unused: readonly Reserved[]): Promise<void> {
  for (const { client, windowMs, startsAt, files, bytes } of unused) {
    if (files === 0 && bytes === 0) continue
    await db.run(
      sql`update quotas set files = files - ${files}, bytes = bytes - ${bytes}
        where client = ${client} and window_ms = ${windowMs} and starts_at = ${startsAt}`,
    )
  }
}

/** The windows of rules now, in their order. */
export async function readWindows(db: Db, rules: readonly QuotaRule[]): Promise<QuotaWindow[]> {
  const now = await db.now()
  const windows: QuotaWindow[] = []
  for (const rule of rules) windows.push(await readWindow(db, rule, now))
  return windows
}

async function readWindow(db: Db, rule: QuotaRule, now: number): Promise<QuotaWindow> {
  const startsAt = startOf(now, rule.windowMs)
  const [row] = await db.all<{ files: number; bytes: number }>(
    sql`select files, bytes from quotas
      where client = ${rule.client} and window_ms = ${rule.windowMs} and starts_at = ${startsAt}`,
  )
  return { rule, startsAt, now, files: row?.files ?? 0, bytes: row?.bytes ?? 0 }
}

/** Lists the use of all clients in the windows that have not ended. */
export async function currentQuotas(db: Db): Promise<Reserved[]> {
  return db.all<Reserved>(
    sql`select client, window_ms as "windowMs", starts_at as "startsAt", files, bytes from quotas
      where starts_at + window_ms > ${db.time} and files > 0 order by client, window_ms`,
  )
}
