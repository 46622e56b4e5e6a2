import { createHash, randomUUID } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import { poll } from '../../flow/poll.ts'
import { createPresence } from '../../flow/presence.ts'
import {
  type KeptResponse,
  NOBODY,
  type Repetition,
  STORED_STATES,
  type Store,
} from '../../store/contract.ts'
import { createClaims, type Keyed } from '../delivery/claims.ts'
import type { Input } from '../input.ts'

const SAVE_AGAIN_MS = 1000
/** Of one job. */
const MOST_ENTRIES = 10_000
/** After that a key counts as new. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** An answer, and whether a repetition gets it again or is a new attempt. */
export interface NewAnswer extends KeptResponse {
  readonly keep: boolean
}

/** Everything was stored for the first request, but its process ended before it had an answer. */
interface UnansweredJob {
  readonly status: undefined
  /** The job to finish. */
  readonly jobId: string
}

type Run = (keyed: Keyed) => Promise<NewAnswer>

interface Unsaved {
  readonly fingerprint: string
  /** Undefined: the key is free. */
  readonly answer: KeptResponse | undefined
}

/** Answers requests that carry an `Idempotency-Key` once (draft-ietf-httpapi-idempotency-key-header). */
export interface Idempotency {
  /**
   * The first request with a key runs; the others wait for it and get its answer, also after a restart and from another
   * process of the same store, for as long as what it stored is there.
   *
   * @param key unique to the caller
   * @param fingerprint what the request asks for; see `fingerprintOf`
   * @param run does what is asked; the job it begins is to carry the key
   * @param signal ends waiting for another request; what runs is not its business
   * @throws UploadError `idempotency_key_reused` when the key came with another request before
   */
  answerOnce(
    key: string,
    fingerprint: string,
    run: Run,
    signal: AbortSignal,
  ): Promise<KeptResponse | UnansweredJob>
  /** Saves what could not be saved before, if that is possible now. */
  close(): Promise<void>
}

/**
 * @param owner name of this process in the store
 * @param patienceMs for how long a process of another machine may be silent; default 30 s
 * @param now milliseconds since the epoch
 */
export function createIdempotency(
  store: Store,
  owner: string,
  patienceMs?: number,
  now: () => number = Date.now,
): Idempotency {
  const presence = createPresence(patienceMs)
  /** Keys that this process is at, for one request each. What it has in the store of all others is left over. */
  const busy = new Set<string>()
  /** What the store did not take, by key: it would have the next request upload once more, or wait for ever. */
  const unsaved = new Map<string, Unsaved>()
  let timer: NodeJS.Timeout | undefined

  function exclusively<T>(key: string, work: () => Promise<T>): Promise<T> {
    busy.add(key)
    return work().finally(() => busy.delete(key))
  }

  /** Does what is asked unless that was done. @returns undefined: to be asked again, since another process is at it */
  async function attempt(
    key: string,
    fingerprint: string,
    run: Run,
  ): Promise<KeptResponse | UnansweredJob | undefined> {
    const kept = unsaved.get(key)
    if (kept?.answer) {
      assertSame(kept, fingerprint)
      return kept.answer
    }
    const before = await store.repetition(key)
    if (before === undefined) {
      const reserved = { fingerprint, owner, seed: randomUUID(), createdAt: now(), claims: [] }
      const isMine = await store.reserve(key, reserved)
      return isMine ? runAndKeep(key, fingerprint, run, reserved) : undefined
    }
    if (isOld(before)) return forget(key, before)
    assertFree(before, fingerprint)
    const { answer, jobId } = before
    if (!answer && !(await isAbandoned(before))) return undefined
    if (await isGone(jobId)) return forget(key, before)
    if (answer) return answer
    if (jobId && (await isDelivered(jobId))) return { status: undefined, jobId }
    const isMine = await store.takeOver(key, before.owner, owner, fingerprint)
    return isMine ? runAndKeep(key, fingerprint, run, before) : undefined
  }

  const isOld = ({ createdAt }: Repetition) => createdAt < now() - KEPT_MS

  async function forget(key: string, { createdAt }: Repetition): Promise<undefined> {
    await store.expire(key, createdAt + 1)
  }

  /** Whether whoever has the key will never answer. */
  async function isAbandoned({ owner: by, createdAt }: Repetition): Promise<boolean> {
    if (by === owner || by === NOBODY) return true
    return presence.isGone(by, (await store.owners()).get(by) ?? createdAt)
  }

  async function isDelivered(jobId: string): Promise<boolean> {
    const job = await store.job(jobId)
    return job !== undefined && STORED_STATES.includes(job.state)
  }

  /** Whether something that was stored for a job was removed since, or is due to be: its links lead nowhere. */
  async function isGone(jobId: string | undefined): Promise<boolean> {
    if (jobId === undefined) return false
    const stored = await store.history({ jobId, limit: MOST_ENTRIES })
    return stored.some(({ removedAt, expiresAt = Infinity }) => removedAt !== undefined || expiresAt <= now())
  }

  async function runAndKeep(
    key: string,
    fingerprint: string,
    run: Run,
    { createdAt: time, seed, ...before }: Pick<Repetition, 'fingerprint' | 'createdAt' | 'seed' | 'claims'>,
  ): Promise<KeptResponse> {
    const earlier = before.fingerprint === fingerprint ? before.claims : []
    const claims = createClaims(earlier, store, all => store.noteClaims(key, owner, all), now)
    unsaved.delete(key) // that it is free, which it is no more
    let kept: KeptResponse | undefined
    try {
      const { keep, ...answer } = await run({ time, seed, claims })
      if (keep) kept = answer
      return answer
    } finally {
      await save(key, { fingerprint, answer: kept })
    }
  }

  async function save(key: string, what: Unsaved): Promise<void> {
    try {
      await (what.answer ? store.answer(key, owner, what.answer) : store.release(key, owner))
      unsaved.delete(key)
    } catch {
      unsaved.set(key, what)
      saveLater()
    }
  }

  function saveLater(): void {
    timer ??= setTimeout(async () => {
      for (const [key, what] of unsaved) {
        if (!busy.has(key)) await exclusively(key, () => save(key, what))
      }
      timer = undefined
      if (unsaved.size > 0) saveLater()
    }, SAVE_AGAIN_MS).unref()
  }

  return {
    answerOnce: (key, fingerprint, run, signal) =>
      poll(async () => {
        if (!busy.has(key)) return exclusively(key, () => attempt(key, fingerprint, run))
        const before = await store.repetition(key).catch(() => undefined)
        if (before && !isOld(before)) assertFree(before, fingerprint)
        return undefined
      }, signal),
    async close() {
      for (const [key, what] of unsaved) await save(key, what)
      clearTimeout(timer)
    },
  }
}

/** The key of a request that has failed may come with another one. */
function assertFree(before: Repetition, fingerprint: string): void {
  if (before.owner !== NOBODY) assertSame(before, fingerprint)
}

function assertSame(before: Pick<Repetition, 'fingerprint'>, fingerprint: string): void {
  if (before.fingerprint === fingerprint) return
  throw new UploadError(
    'idempotency_key_reused',
    'This Idempotency-Key came with another request before. Send a new key with a new request.',
  )
}

/**
 * Hash of what a request asks for: its destination, its options and its inputs, files by their names and bytes, whatever
 * became of them. Undefined when some bytes are not known: it can't be told from another request then.
 *
 * @param options those that count, always in one order
 */
export function fingerprintOf(
  destination: string,
  options: object,
  inputs: readonly Input[],
): string | undefined {
  const isKnown = (input: Input) => input.kind !== 'form' || input.payload.sha256 !== undefined
  if (!inputs.every(isKnown)) return undefined
  const text = JSON.stringify(options)
  const asked = inputs.map(input =>
    input.kind === 'form' ? [input.kind, input.origin, input.payload.sha256] : [input.kind, input.origin],
  )
  return createHash('sha256')
    .update(JSON.stringify([text === '{}' ? destination : destination + text, asked]))
    .digest('hex')
}
