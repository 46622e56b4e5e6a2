import { createHash } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { poll } from '../../flow/poll.ts'
import { createPresence } from '../../flow/presence.ts'
import {
  type Answer,
  type Claim,
  NOBODY,
  type Repetition,
  STORED_STATES,
  type Store,
} from '../../store/contract.ts'
import { type Claims, createClaims } from '../delivery/claims.ts'
import type { Input } from '../input.ts'

const SAVE_AGAIN_MS = 1000
/** After that a key counts as new. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** An answer, and whether a repetition gets it again or is a new attempt. */
export interface NewAnswer extends Answer {
  readonly keep: boolean
}

/** Everything was stored for the first request, but its process ended before it had an answer. */
interface UnansweredJob {
  readonly status: undefined
  /** The job to finish. */
  readonly jobId: string
}

type Run = (claims: Claims) => Promise<NewAnswer>

/** Answers requests that carry an `Idempotency-Key` once (draft-ietf-httpapi-idempotency-key-header). */
export interface Idempotency {
  /**
   * The first request with a key runs; the others wait for it and get its answer, also after a restart and from another
   * process of the same store.
   *
   * @param key unique to the caller
   * @param fingerprint what the request asks for; see `fingerprintOf`
   * @param run does what is asked; the job it begins is to carry the key. Gets what earlier attempts may have stored
   * @param signal ends waiting for another request; what runs is not its business
   * @throws UploadError `idempotency_key_reused` when the key came with another request before
   */
  answerOnce(key: string, fingerprint: string, run: Run, signal: AbortSignal): Promise<Answer | UnansweredJob>
  /** Saves what could not be saved before, if that is possible now. */
  close(): Promise<void>
}

/**
 * @param owner name of this process in the store
 * @param patienceMs for how long a process of another machine may be silent
 * @param now milliseconds since the epoch
 */
export function createIdempotency(
  store: Store,
  owner: string,
  patienceMs?: number,
  now: () => number = Date.now,
): Idempotency {
  const presence = createPresence(patienceMs)
  /** One request at a time for each key; the others of this process wait for it. */
  const first = new Map<string, Promise<unknown>>()
  /** What the store did not take: it would have the next request upload once more, or wait for ever. */
  const unsaved = new Map<string, { fingerprint: string; answer: Answer | undefined }>()
  let timer: NodeJS.Timeout | undefined

  /** Has `work` done while no other work of this process for the key goes on. */
  function exclusively<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = work().finally(() => first.delete(key))
    first.set(key, mine)
    return mine
  }

  async function save(key: string, fingerprint: string, answer: Answer | undefined): Promise<void> {
    try {
      await (answer ? store.answer(key, owner, answer) : store.release(key, owner))
      unsaved.delete(key)
    } catch {
      unsaved.set(key, { fingerprint, answer })
      saveLater()
    }
  }

  function saveLater(): void {
    timer ??= setTimeout(async () => {
      for (const [key, { fingerprint, answer }] of [...unsaved]) {
        if (!first.has(key)) await exclusively(key, () => save(key, fingerprint, answer))
      }
      timer = undefined
      if (unsaved.size > 0) saveLater()
    }, SAVE_AGAIN_MS).unref()
  }

  async function runAndKeep(
    key: string,
    fingerprint: string,
    run: Run,
    earlier: readonly Claim[] = [],
  ): Promise<Answer> {
    const claims = createClaims(earlier, store, all => store.noteClaims(key, owner, all), now)
    try {
      const { keep, ...answer } = await run(claims)
      await save(key, fingerprint, keep ? answer : undefined)
      return answer
    } catch (error) {
      await save(key, fingerprint, undefined)
      throw error
    }
  }

  async function find(key: string): Promise<Repetition | undefined> {
    const found = await store.repetition(key)
    const oldest = now() - KEPT_MS
    if (found === undefined || found.createdAt >= oldest) return found
    await store.expire(key, oldest)
    return undefined
  }

  /** Whether whoever has the key will never answer. */
  async function isAbandoned({ owner: by, createdAt }: Repetition): Promise<boolean> {
    // Whatever this process does for the key, it does one after the other.
    if (by === owner || by === NOBODY) return true
    return presence.isGone(by, (await store.owners()).get(by) ?? createdAt)
  }

  async function isDelivered(jobId: string): Promise<boolean> {
    const job = await store.job(jobId)
    return job !== undefined && STORED_STATES.includes(job.state)
  }

  async function answer(
    key: string,
    fingerprint: string,
    run: Run,
    signal: AbortSignal,
  ): Promise<Answer | UnansweredJob> {
    const kept = unsaved.get(key)
    if (kept?.answer) return assertSame(kept, fingerprint).answer as Answer
    unsaved.delete(key)
    return poll(async () => {
      const before = await find(key)
      if (before === undefined) {
        const isMine = await store.reserve(key, fingerprint, owner, now())
        return isMine ? runAndKeep(key, fingerprint, run) : undefined
      }
      assertFree(before, fingerprint)
      if (before.answer) return before.answer
      if (await isAbandoned(before)) {
        if (before.jobId && (await isDelivered(before.jobId)))
          return { status: undefined, jobId: before.jobId }
        if (await store.takeOver(key, before.owner, owner, fingerprint))
          return runAndKeep(key, fingerprint, run, before.fingerprint === fingerprint ? before.claims : [])
      }
      return undefined
    }, signal)
  }

  return {
    async answerOnce(key, fingerprint, run, signal) {
      for (;;) {
        signal.throwIfAborted()
        const ahead = first.get(key)
        if (ahead === undefined) return exclusively(key, () => answer(key, fingerprint, run, signal))
        const before = await find(key).catch(() => undefined)
        if (before) assertFree(before, fingerprint)
        // However that ends, and until the signal is aborted.
        await orAborted(ahead, signal).catch(() => {})
      }
    },
    async close() {
      for (const [key, { fingerprint, answer }] of [...unsaved]) await save(key, fingerprint, answer)
      clearTimeout(timer)
    },
  }
}

/** The key of a request that has failed may come with another one. */
function assertFree(before: Repetition, fingerprint: string): void {
  if (before.owner !== NOBODY) assertSame(before, fingerprint)
}

function assertSame<T extends { fingerprint: string }>(before: T, fingerprint: string): T {
  if (before.fingerprint === fingerprint) return before
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
