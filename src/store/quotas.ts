import type { QuotaRule, QuotaWindow } from './contract.ts'
import { type Db, sql } from './sql.ts'

/** What an upload has taken of one window. */
export interface Reserved {
  readonly client: string
  readonly windowMs: number
  readonly startsAt: number
  readonly files: number
  readonly bytes: number
}

const startOf = (now: number, windowMs: number) => now - (now % windowMs)

/**
 * Takes files of the windows of several quotas, of all or of none.
 *
 * @returns what was taken, or the first window without room
 */
export async function reserve(
  db: Db,
  rules: readonly QuotaRule[],
  files: number,
  bytes: number,
  now: number,
): Promise<{ readonly taken: readonly Reserved[] } | { readonly full: QuotaWindow }> {
  const taken: Reserved[] = []
  for (const rule of rules) {
    const { client, windowMs } = rule
    const startsAt = startOf(now, windowMs)
    const [mostFiles, mostBytes] = [
      rule.files ?? Number.MAX_SAFE_INTEGER,
      rule.bytes ?? Number.MAX_SAFE_INTEGER,
    ]
    const fits =
      files <= mostFiles &&
      bytes <= mostBytes &&
      (await db.run(
        sql`insert into quotas (client, window_ms, starts_at, files, bytes)
          values (${client}, ${windowMs}, ${startsAt}, ${files}, ${bytes})
          on conflict (client, window_ms, starts_at) do update
          set files = quotas.files + excluded.files, bytes = quotas.bytes + excluded.bytes
          where quotas.files + excluded.files <= ${mostFiles} and quotas.bytes + excluded.bytes <= ${mostBytes}`,
      )) > 0
    if (fits) taken.push({ client, windowMs, startsAt, files, bytes })
    else {
      await giveBack(db, taken)
      return { full: await readWindow(db, rule, now) }
    }
  }
  return { taken }
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

/** Adds what was taken of the same windows. */
export function addReserved(all: readonly Reserved[]): Reserved[] {
  const sums = new Map<string, Reserved>()
  for (const one of all) {
    const name = JSON.stringify([one.client, one.windowMs, one.startsAt])
    const before = sums.get(name)
    sums.set(
      name,
      before ? { ...one, files: before.files + one.files, bytes: before.bytes + one.bytes } : one,
    )
  }
  return [...sums.values()]
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

/** What all clients have used in the windows that have not ended. */
export async function currentQuotas(db: Db): Promise<Reserved[]> {
  return db.all<Reserved>(
    sql`select client, window_ms as "windowMs", starts_at as "startsAt", files, bytes from quotas
      where starts_at + window_ms > ${db.time} and files > 0 order by client, window_ms`,
  )
}
