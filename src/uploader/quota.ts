import { setTimeout as sleep } from 'node:timers/promises'
import { UploadError } from '../errors.ts'
import { bytes as showSize } from '../log-lines.ts'
import { quoteFile } from '../payload/index.ts'
import { createBatcher } from '../store/batch.ts'
import type { Store, StoredFile } from '../store/contract.ts'
import type {
  QuotaPart,
  QuotaReply,
  QuotaRequest,
  QuotaRule,
  QuotaUse,
  QuotaWindow,
} from '../store/quota-contract.ts'
import { showDuration } from '../times.ts'
import { createQuotaSlices } from './quota-slices.ts'

/** Number of windows whose last known state is kept. */
const MOST_KNOWN = 1000
/** Maximum time to wait for what other servers don't use. */
const RECALL_MS = 2000
const RECALL_PAUSE_MS = 40

/** The quotas of clients, which all servers with one database share. */
export interface Quotas {
  /** Begins an upload. Undefined if nothing limits the client. */
  begin(rules: readonly QuotaRule[] | undefined): QuotaShare | undefined
  /**
   * Refuses a request before its body is read if there is no room for a file of one byte.
   *
   * @throws UploadError `quota_exceeded`
   */
  assertRoom(rules: readonly QuotaRule[] | undefined): Promise<void>
  /** The state of quotas, as far as this server knows it. */
  windows(rules: readonly QuotaRule[]): Promise<QuotaWindow[]>
  /** Returns what is not used. Must be called before the database is closed. */
  close(): Promise<void>
}

/** What one upload takes of the quotas of its client. */
export interface QuotaShare {
  /**
   * Reserves room for a file.
   *
   * @param name of the file, for messages
   * @returns gives the room back at once, for a file that was not stored
   * @throws UploadError `quota_exceeded`, or `too_large` if the file is larger than a whole quota
   */
  take(bytes: number, name: string): Promise<() => void>
  /** What the upload has reserved and used. What it has not used is given back. */
  settle(stored: readonly StoredFile[]): QuotaUse[]
}

interface Waiting {
  readonly request: QuotaRequest
  reply?: QuotaReply
}

/** @param owner name of this process in the database */
export function createQuotas(
  store: Pick<Store, 'reserveQuota' | 'quotaWindows' | 'returnQuota' | 'recalledQuotas'>,
  owner: string,
): Quotas {
  let last: Promise<unknown> = Promise.resolve()
  const slices = createQuotaSlices(store, owner, () => last)
  /** Reservations at the same time are one transaction, so that no client waits for the uploads of another server. */
  const reserveSoon = createBatcher<Waiting>(async all => {
    const requests = all.map(one => one.request)
    const askedAt = performance.now()
    const returned = slices.drain(requests.flatMap(one => one.rules))
    const asking = store.reserveQuota(owner, requests, { returned })
    last = asking.catch(() => slices.giveBack(returned))
    const replies = await asking
    slices.add(replies, askedAt)
    for (const [n, one] of all.entries()) Object.assign(one, { reply: replies[n] })
  })
  const known = new Map<string, QuotaWindow>()

  function note(windows: readonly QuotaWindow[]): void {
    for (const window of windows) {
      const name = nameOf(window.rule)
      known.delete(name)
      known.set(name, window)
    }
    for (const [oldest] of known) {
      if (known.size <= MOST_KNOWN) break
      known.delete(oldest)
    }
  }

  async function reserve(request: QuotaRequest): Promise<QuotaReply> {
    const waiting: Waiting = { request }
    await reserveSoon(waiting)
    const { reply } = waiting
    if (!reply) throw new Error('the database did not reply to a reservation')
    note(reply.windows)
    return reply
  }

  /** Before it refuses, it waits for what other servers have reserved and don't use. */
  async function reserveOrWait(rules: readonly QuotaRule[], bytes: number): Promise<readonly QuotaWindow[]> {
    const began = performance.now()
    for (let isRecall = true; ; isRecall = false) {
      const { isGranted, windows, isRecalling } = await reserve({ rules, bytes, isRecall })
      if (isGranted) return windows
      if (!isRecalling || performance.now() - began > RECALL_MS) throw exceeded(windows, bytes)
      await sleep(RECALL_PAUSE_MS)
    }
  }

  return {
    close: slices.close,
    begin(rules = []) {
      if (rules.length === 0) return undefined
      const granted: { readonly windows: readonly QuotaWindow[]; readonly bytes: number }[] = []
      return {
        async take(bytes, name) {
          for (const rule of rules) if (bytes > (rule.bytes ?? Infinity)) throw neverFits(name, rule)
          const windows = slices.take(rules, bytes) ?? (await reserveOrWait(rules, bytes))
          const one = { windows, bytes }
          granted.push(one)
          return () => {
            const index = granted.indexOf(one)
            if (index === -1) return
            granted.splice(index, 1)
            void slices.giveBack(partsOf(windows, bytes))
          }
        },
        settle: stored => toUses(granted, stored),
      }
    },
    async assertRoom(rules = []) {
      if (rules.length === 0 || findFull(await windowsOf(rules), 1) === undefined) return
      // Slices count as used, also those of other servers, so only a reservation tells whether there is room.
      const windows = await reserveOrWait(rules, 1)
      await slices.giveBack(partsOf(windows, 1))
    },
    windows: windowsOf,
  }

  async function windowsOf(rules: readonly QuotaRule[]): Promise<QuotaWindow[]> {
    const here = rules.map(rule => known.get(nameOf(rule)))
    if (here.every(window => window !== undefined && !hasEnded(window)))
      return here.filter(window => window !== undefined)
    const found = await store.quotaWindows(rules)
    note(found)
    return found
  }
}
const nameOf = ({ client, windowMs }: QuotaRule) => `${windowMs} ${client}`

/** By the clock of this machine, which may differ from that of the database. */
const hasEnded = ({ startsAt, rule }: QuotaWindow) => Date.now() >= startsAt + rule.windowMs

/** The files of an upload may be in two windows, if one ended meanwhile. What was used counts in the last one. */
function toUses(
  granted: readonly { readonly windows: readonly QuotaWindow[]; readonly bytes: number }[],
  stored: readonly StoredFile[],
): QuotaUse[] {
  const uses = new Map<string, QuotaUse>()
  for (const { windows, bytes } of granted) {
    for (const { rule, startsAt } of windows) {
      const name = `${startsAt} ${nameOf(rule)}`
      const before = uses.get(name)
      uses.set(name, {
        ...{ client: rule.client, windowMs: rule.windowMs, startsAt, usedFiles: 0, usedBytes: 0 },
        reservedFiles: (before?.reservedFiles ?? 0) + 1,
        reservedBytes: (before?.reservedBytes ?? 0) + bytes,
      })
    }
  }
  const usedBytes = stored.reduce((sum, { size }) => sum + size, 0)
  const last = new Set(
    (granted.at(-1)?.windows ?? []).map(({ rule, startsAt }) => `${startsAt} ${nameOf(rule)}`),
  )
  return [...uses].map(([name, use]) =>
    last.has(name) ? { ...use, usedFiles: stored.length, usedBytes } : use,
  )
}

/** A file in each window, to give it back. */
const partsOf = (windows: readonly QuotaWindow[], bytes: number): QuotaPart[] =>
  windows.map(({ rule: { client, windowMs }, startsAt }) => ({ client, windowMs, startsAt, files: 1, bytes }))

/** The first window without room for a file. */
function findFull(windows: readonly QuotaWindow[], bytes: number): QuotaWindow | undefined {
  return windows.find(
    ({ rule, files, bytes: used }) =>
      files + 1 > (rule.files ?? Infinity) || used + bytes > (rule.bytes ?? Infinity),
  )
}

function exceeded(windows: readonly QuotaWindow[], bytes: number): UploadError {
  const first = findFull(windows, bytes)
  if (!first) return new UploadError('quota_exceeded', 'The quota is used up.')
  const { rule, startsAt, now } = first
  const retryAfterS = Math.max(1, Math.ceil((startsAt + rule.windowMs - now) / 1000))
  return new UploadError(
    'quota_exceeded',
    `The quota of this client, ${describeRule(rule)}, is used up or has no room for this file. Try again in ${retryAfterS} s.`,
    { retryAfterS },
  )
}

function neverFits(name: string, rule: QuotaRule): UploadError {
  return new UploadError(
    'too_large',
    `${quoteFile(name)} is larger than the whole quota of this client, ${describeRule(rule)}.`,
  )
}

function describeRule({ files, bytes, windowMs }: QuotaRule): string {
  const parts = [files !== undefined && `${files} files`, bytes !== undefined && showSize(bytes)]
  return `${parts.filter(Boolean).join(' and ')} in ${showDuration(windowMs)}`
}
