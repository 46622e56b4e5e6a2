import type { Response } from 'express'
import type { QuotaWindow } from '../store/contract.ts'
import { readWindows } from '../store/quotas.ts'
import type { Uploader } from '../uploader/app.ts'
import type { Caller } from '../uploader/input.ts'

/**
 * Tells a client with quotas how much is left, in the fields `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers-11).
 */
export async function announceQuotas(
  res: Response,
  quotas: NonNullable<Caller['quotas']>,
  { database }: Pick<Uploader, 'database'>,
): Promise<void> {
  if (res.headersSent) return
  const windows = await database.read(db => readWindows(db, quotas)).catch(() => undefined) // the upload then reports the database
  if (!windows) return
  res.setHeader(
    'RateLimit-Policy',
    listOf(windows, ({ limit, unit, seconds }) => `q=${limit};w=${seconds};qu="${unit}"`),
  )
  res.setHeader(
    'RateLimit',
    listOf(windows, ({ left, untilS }) => `r=${left};t=${untilS}`),
  )
}

interface Limit {
  readonly unit: 'files' | 'content-bytes'
  readonly limit: number
  readonly left: number
  /** Length of the window. */
  readonly seconds: number
  /** Until the window ends. */
  readonly untilS: number
}

/** A list of RFC 9651 with an item for each limit. */
function listOf(windows: readonly QuotaWindow[], describe: (limit: Limit) => string): string {
  const items = windows.flatMap(({ rule, startsAt, files, bytes }, n) => {
    const suffix = n === 0 ? '' : `-${n + 1}`
    const seconds = Math.floor(rule.windowMs / 1000)
    const untilS = Math.max(0, Math.ceil((startsAt + rule.windowMs - Date.now()) / 1000))
    const of = (name: string, unit: Limit['unit'], limit: number | undefined, used: number) =>
      limit === undefined
        ? []
        : [
            `"${name}${suffix}";${describe({ unit, limit, left: Math.max(0, limit - used), seconds, untilS })}`,
          ]
    return [...of('files', 'files', rule.files, files), ...of('bytes', 'content-bytes', rule.bytes, bytes)]
  })
  return items.join(', ')
}
