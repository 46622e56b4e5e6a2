import type { Store } from '../store/contract.ts'
import type { QuotaPart, QuotaReply, QuotaRule, QuotaWindow } from '../store/quota-contract.ts'

/** Pause between two looks whether another process needs what this one does not use. */
const LOOK_MS = 100
/** A slice is returned after this time, so that others find what is not used. */
const KEPT_MS = 1000
/** A slice is not used after this time, even if it could not be returned: others may regard this process as ended. */
const VALID_MS = 10_000
/** Recalls are answered for this long after the last upload. */
const WATCHED_MS = 60_000

interface Held {
  files: number
  bytes: number
  readonly window: QuotaWindow
  /** By the monotonic clock. */
  readonly since: number
  readonly endsAt: number
}

/** Slices of quotas that this process has reserved, from which uploads take without asking the database. */
export interface QuotaSlices {
  /** Takes from the slices of all rules, or from none. @returns the windows */
  take(rules: readonly QuotaRule[], bytes: number): QuotaWindow[] | undefined
  /** Removes the slices of rules. @returns what is left of them, to be returned to the database */
  drain(rules: readonly QuotaRule[]): QuotaPart[]
  /** Returns parts, and what is left of their slices, to the database; later if it fails now. */
  giveBack(parts: readonly QuotaPart[]): Promise<void>
  /** @param askedAt time before the reply, by the monotonic clock */
  add(replies: readonly QuotaReply[], askedAt: number): void
  close(): Promise<void>
}

const nameOf = ({ client, windowMs }: Pick<QuotaRule, 'client' | 'windowMs'>) => `${windowMs} ${client}`

const partOf = ({ window: { rule, startsAt }, files, bytes }: Held): QuotaPart => ({
  ...{ client: rule.client, windowMs: rule.windowMs, startsAt, files, bytes },
})

/** @param settled resolves once no reservation is on its way, which may bring a slice */
export function createQuotaSlices(
  store: Pick<Store, 'returnQuota' | 'recalledQuotas'>,
  owner: string,
  settled: () => Promise<unknown>,
): QuotaSlices {
  const slices = new Map<string, Held>()
  /** What the database did not take back yet. */
  let owed: readonly QuotaPart[] = []
  let timer: NodeJS.Timeout | undefined
  let lastTake = Number.NEGATIVE_INFINITY

  function remove(names: readonly string[]): Held[] {
    return names.flatMap(name => {
      const held = slices.get(name)
      slices.delete(name)
      return held ? [held] : []
    })
  }

  async function giveBack(parts: readonly QuotaPart[]): Promise<void> {
    const back = [...owed, ...parts]
    owed = []
    if (back.length === 0) return
    // The database takes what a process returns for its reply to a recall, so nothing may be kept.
    const all = [...back, ...remove(back.map(nameOf)).map(partOf)]
    try {
      await store.returnQuota(owner, all)
    } catch {
      owed = [...owed, ...all]
      watch()
    }
  }

  async function look(): Promise<void> {
    const recalled = await store.recalledQuotas(owner)
    if (recalled.length > 0) await settled()
    const old = [...slices].filter(([, { since }]) => performance.now() - since > KEPT_MS)
    const names = new Set([...old.map(([name]) => name), ...recalled.map(nameOf)])
    const parts = remove([...names]).map(partOf)
    const answers = recalled.map(one => ({ ...one, files: 0, bytes: 0 }))
    await giveBack([...parts, ...answers])
  }

  function watch(): void {
    timer ??= setTimeout(async () => {
      await look().catch(() => {})
      timer = undefined
      if (slices.size + owed.length > 0 || performance.now() - lastTake < WATCHED_MS) watch()
    }, LOOK_MS).unref()
  }

  return {
    take(rules, bytes) {
      const now = performance.now()
      lastTake = now
      const held = rules.map(rule => slices.get(nameOf(rule)))
      const hasRoom = held.every(
        (one, n) =>
          one !== undefined &&
          now < one.endsAt &&
          now - one.since < VALID_MS &&
          (rules[n]?.files === undefined || one.files >= 1) &&
          (rules[n]?.bytes === undefined || one.bytes >= bytes),
      )
      if (!hasRoom) return undefined
      return held.flatMap((one, n) => {
        const rule = rules[n]
        if (!one || !rule) return []
        if (rule.files !== undefined) one.files -= 1
        if (rule.bytes !== undefined) one.bytes -= bytes
        return [{ ...one.window, rule }]
      })
    },
    drain: rules => remove([...new Set(rules.map(nameOf))]).map(partOf),
    giveBack,
    add(replies, askedAt) {
      const windows = new Map(replies.flatMap(one => one.windows).map(one => [nameOf(one.rule), one]))
      for (const { files, bytes, ...part } of replies.flatMap(one => one.slices ?? [])) {
        const window = windows.get(nameOf(part))
        if (!window) continue
        const endsAt = askedAt + window.startsAt + part.windowMs - window.now
        slices.set(nameOf(part), { files, bytes, window, since: askedAt, endsAt })
      }
      watch()
    },
    async close() {
      clearTimeout(timer)
      await giveBack(remove([...slices.keys()]).map(partOf))
      clearTimeout(timer) // nothing is retried any more: the end of the process gives it back
    },
  }
}
