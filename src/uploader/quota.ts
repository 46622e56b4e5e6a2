import { UploadError } from '../errors.ts'
import { bytes as showSize } from '../log-lines.ts'
import { type Payload, quoteFile } from '../payload/index.ts'
import type { QuotaRule, QuotaWindow } from '../store/contract.ts'
import type { Database } from '../store/database.ts'
import { hasRoom, readWindows } from '../store/quotas.ts'
import { showDuration } from '../times.ts'

/** Refuses a file that is larger than a whole quota: waiting does not help. @throws UploadError `too_large` */
export function assertFitsQuota({ size, name }: Payload, rules: readonly QuotaRule[]): void {
  const rule = rules.find(({ bytes = Infinity }) => size > bytes)
  if (rule)
    throw new UploadError(
      'too_large',
      `${quoteFile(name)} exceeds the whole quota of this client (${describeRule(rule)}) and can never be uploaded with it.`,
    )
}

/** Refuses a request before its body is read if there is no room for a file of one byte. @throws UploadError `quota_exceeded` */
export async function assertRoom(database: Database, rules: readonly QuotaRule[]): Promise<void> {
  const windows = await database.read(db => readWindows(db, rules))
  const full = windows.find(({ rule, ...used }) => !hasRoom(rule, used, 1))
  if (full) throw quotaExceeded(full)
}

export function quotaExceeded({ rule, startsAt, now }: QuotaWindow): UploadError {
  const retryAfterS = Math.max(1, Math.ceil((startsAt + rule.windowMs - now) / 1000))
  const renewal = new Date(startsAt + rule.windowMs)
    .toISOString()
    .replace(/:\d\d\.\d+Z/, ' UTC')
    .replace('T', ' ')
  return new UploadError(
    'quota_exceeded',
    `The quota of this client (${describeRule(rule)}) is used up or too small for this file. It renews at ${renewal}.`,
    { retryAfterS },
  )
}

function describeRule({ files, bytes, windowMs }: QuotaRule): string {
  const parts = [files !== undefined && `${files} files`, bytes !== undefined && showSize(bytes)]
  return `${parts.filter(Boolean).join(' and ')} in ${showDuration(windowMs)}`
}
