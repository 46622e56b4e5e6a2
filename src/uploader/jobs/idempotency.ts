import { createHash, randomUUID } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import { poll } from '../../flow/poll.ts'
import { createPresence, type Presence } from '../../flow/presence.ts'
import {
  IdempotencyKeyTaken,
  type IdempotencyRecord,
  type KeptResponse,
  NO_OWNER,
  STORED_STATES,
  type Store,
} from '../../store/contract.ts'
import { createClaims, type RetryContext } from '../delivery/claims.ts'
import type { Input } from '../input.ts'
import { isAbandoned } from './lease.ts'

const SAVE_AGAIN_MS = 1000
/** History entries of one job. */
const MOST_ENTRIES = 10_000
/** After this time an idempotency key counts as new. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** A response. */
export interface NewResponse extends KeptResponse {
  /**
   * What repeated requests get: this response; the response that the finished job tells, so that it is not saved twice; or
   * nothing, and they are new attempts.
   */
  readonly keep: 'response' | 'job' | 'nothing'
}

/** Everything was stored for the first request. */
interface StoredJob {
  readonly status: undefined
  /** The job, which may have to be finished. */
  readonly jobId: string
}

/** `undefined`: another process handles the request. Ask again. */
type Result = KeptResponse | StoredJob | undefined

/** Handles requests with an `Idempotency-Key` once (draft-ietf-httpapi-idempotency-key-header). */
export interface Idempotency {
  /**
   * The first request with an idempotency key runs. The others wait for it and get its response, also after a restart and
   * from another process that uses the same database, as long as the stored files exist.
   *
   * @param key unique to the client
   * @param fingerprint what the request asks for; see `fingerprintOf`
   * @param run handles the request. The job that it begins must carry the idempotency key and its reservation
   * @param signal ends waiting for another request, but does not stop a request that runs
   * @throws UploadError `idempotency_key_reused` if an earlier request with this key asked for something else
   */
  respondOnce(
    key: string,
    fingerprint: string,
    run: (context: RetryContext) => Promise<NewResponse>,
    signal: AbortSignal,
  ): Promise<KeptResponse | StoredJob>
  /** Saves what could not be saved before, if that is possible now. */
  close(): Promise<void>
}

/** A request with an idempotency key. */
interface KeyedRequest {
  readonly key: string
  readonly fingerprint: string
  run(context: RetryContext): Promise<NewResponse>
}

/** What the functions of this file share. */
interface Surroundings {
  readonly store: Store
  /** Name of this process in the database. */
  readonly owner: string
  readonly presence: Presence
  readonly saver: ResponseSaver
  /** Milliseconds since the epoch. */
  now(): number
}

/**
 * @param owner name of this process in the database
 * @param patienceMs after this time without a sign of life, a process of another machine counts as ended; default 30 s
 * @param now milliseconds since the epoch
 */
export function createIdempotency(
  store: Store,
  owner: string,
  patienceMs?: number,
  now: () => number = Date.now,
): Idempotency {
  const keys = createKeyLocks()
  const saver = createResponseSaver(store, owner, keys)
  const surroundings = { store, owner, presence: createPresence(patienceMs), saver, now }
  return {
    respondOnce: (key, fingerprint, run, signal) =>
      poll(async () => {
        const request = { key, fingerprint, run }
        if (!keys.isLocked(key)) return keys.run(key, () => attempt(request, surroundings))
        const record = await store.idempotencyRecord(key).catch(() => undefined)
        if (record && !isOld(record, now())) assertNotReused(record, fingerprint)
        return undefined
      }, signal),
    close: saver.close,
  }
}

/** Idempotency keys that this process works on, one request each. Its other records in the database are left over. */
interface KeyLocks {
  isLocked(key: string): boolean
  run<T>(key: string, work: () => Promise<T>): Promise<T>
}

function createKeyLocks(): KeyLocks {
  const locked = new Set<string>()
  return {
    isLocked: key => locked.has(key),
    run(key, work) {
      locked.add(key)
      return work().finally(() => locked.delete(key))
    },
  }
}

/** Handles a request unless that has been done. */
async function attempt(request: KeyedRequest, surroundings: Surroundings): Promise<Result> {
  const { key, fingerprint } = request
  const { store, owner, saver, now } = surroundings
  const unsaved = saver.find(key)
  if (unsaved?.response) {
    assertSame(unsaved, fingerprint)
    return unsaved.response
  }
  const record = await store.idempotencyRecord(key)
  if (record === undefined) {
    const reservation = { fingerprint, owner, seed: randomUUID(), createdAt: now() }
    return runAndSave(request, { ...reservation, claims: [], reservation }, surroundings).catch(ignoreTaken)
  }
  if (isOld(record, now())) return expire(key, record, store)
  assertNotReused(record, fingerprint)
  const { response, jobId } = record
  const job = response || jobId === undefined ? undefined : await store.job(jobId)
  // The job was pruned.
  if (!response && jobId !== undefined && job === undefined) return expire(key, record, store)
  if (!response && job?.state !== 'finished' && !(await isUnattended(record, surroundings))) return undefined
  if (jobId !== undefined && (await isRemoved(jobId, store, now()))) return expire(key, record, store)
  if (response) return response
  if (job && STORED_STATES.includes(job.state)) return { status: undefined, jobId: job.id }
  const isOurs = await store.takeOver(key, record.owner, owner, fingerprint)
  return isOurs ? runAndSave(request, record, surroundings) : undefined
}

async function runAndSave(
  { key, fingerprint, run }: KeyedRequest,
  record: Pick<IdempotencyRecord, 'fingerprint' | 'createdAt' | 'seed' | 'claims'> &
    Pick<RetryContext, 'reservation'>,
  { store, owner, saver, now }: Surroundings,
): Promise<KeptResponse> {
  const earlier = record.fingerprint === fingerprint ? record.claims : []
  const claims = createClaims(earlier, store, all => store.noteClaims(key, owner, all), now)
  saver.drop(key) // an earlier request could not save that the key is free, and it is not free now
  const { createdAt: time, seed, reservation } = record
  try {
    const { keep, ...response } = await run({ time, seed, claims, reservation })
    if (keep !== 'job')
      await saver.save(key, { fingerprint, response: keep === 'response' ? response : undefined })
    return response
  } catch (error) {
    if (!(error instanceof IdempotencyKeyTaken)) await saver.save(key, { fingerprint, response: undefined })
    throw error
  }
}

function ignoreTaken(error: unknown): undefined {
  if (!(error instanceof IdempotencyKeyTaken)) throw error
}

const isOld = ({ createdAt }: IdempotencyRecord, now: number) => createdAt < now - KEPT_MS

async function expire(key: string, { createdAt }: IdempotencyRecord, store: Store): Promise<undefined> {
  await store.expireIdempotencyKey(key, createdAt + 1)
}

/** Whether no process works on the request of a record any more. */
async function isUnattended(record: IdempotencyRecord, { store, owner, presence }: Surroundings) {
  return record.owner === owner || record.owner === NO_OWNER || isAbandoned(record, store, presence)
}

/** Whether a file of a job was removed or has expired: its URL no longer works. */
async function isRemoved(jobId: string, store: Store, now: number): Promise<boolean> {
  const stored = await store.history({ jobId, limit: MOST_ENTRIES })
  return stored.some(({ removedAt, expiresAt = Infinity }) => removedAt !== undefined || expiresAt <= now)
}

interface UnsavedResponse {
  readonly fingerprint: string
  /** Undefined: the idempotency key is free. */
  readonly response: KeptResponse | undefined
}

/** Saves responses. Keeps those that the database does not accept, so that the next request does not upload again. */
interface ResponseSaver {
  /** The response of an idempotency key that is not saved yet. */
  find(key: string): UnsavedResponse | undefined
  drop(key: string): void
  save(key: string, what: UnsavedResponse): Promise<void>
  /** Saves the rest, if that is possible now. */
  close(): Promise<void>
}

function createResponseSaver(store: Store, owner: string, keys: KeyLocks): ResponseSaver {
  const unsaved = new Map<string, UnsavedResponse>()
  let timer: NodeJS.Timeout | undefined

  async function save(key: string, what: UnsavedResponse): Promise<void> {
    try {
      await (what.response ? store.saveResponse(key, owner, what.response) : store.release(key, owner))
      unsaved.delete(key)
    } catch {
      unsaved.set(key, what)
      saveLater()
    }
  }

  function saveLater(): void {
    timer ??= setTimeout(async () => {
      for (const [key, what] of unsaved) {
        if (!keys.isLocked(key)) await keys.run(key, () => save(key, what))
      }
      timer = undefined
      if (unsaved.size > 0) saveLater()
    }, SAVE_AGAIN_MS).unref()
  }

  return {
    find: key => unsaved.get(key),
    drop: key => void unsaved.delete(key),
    save,
    async close() {
      for (const [key, what] of unsaved) await save(key, what)
      clearTimeout(timer)
    },
  }
}

/** The key of a failed request may be used for another request. */
function assertNotReused(record: IdempotencyRecord, fingerprint: string): void {
  if (record.owner !== NO_OWNER) assertSame(record, fingerprint)
}

function assertSame(record: Pick<IdempotencyRecord, 'fingerprint'>, fingerprint: string): void {
  if (record.fingerprint === fingerprint) return
  throw new UploadError(
    'idempotency_key_reused',
    'This Idempotency-Key belongs to another request. Send a new Idempotency-Key with a new request.',
  )
}

/**
 * Hash of what a request asks for: its destination, its options and its inputs. A file counts by its name and bytes, even if
 * it was not stored. Undefined if some bytes are unknown, because another request could have the same hash then.
 *
 * @param options those that are part of the fingerprint, always in the same order
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
