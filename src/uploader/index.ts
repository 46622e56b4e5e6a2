import { asUploadError } from '../errors.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import type { NamedSlots, RunInSlot } from '../flow/slots.ts'
import type { Payload, Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { PictureOptions } from '../pictures/options.ts'
import { withRequestedOptions } from '../pictures/requested-options.ts'
import type { Job, Store, StoredFile } from '../store/contract.ts'
import type { RetryContext } from './delivery/claims.ts'
import {
  chooseDestination,
  type Destination,
  type DestinationChoice,
  idOf,
  type LeftOut,
  mayMeet,
} from './delivery/destinations.ts'
import { expiresAt } from './delivery/expiry.ts'
import { createLocks, createStoreLocker, type Locker } from './delivery/locker.ts'
import { type StoreFileDeps, type StoreFileRequest, storeFile } from './delivery/store-file.ts'
import { assertType, type Caller, type Input, keptOrigin, type Outcome, type UploadOptions } from './input.ts'
import type { Finalizer } from './jobs/finalizer.ts'
import type { Hook } from './jobs/hooks.ts'
import type { Idempotency } from './jobs/idempotency.ts'
import { newJob } from './jobs/new-job.ts'
import type { QuotaShare, Quotas } from './quota.ts'
import { isReadable, obtain, type SourceSettings } from './sources/index.ts'

/** Files of one request that are uploaded at the same time. */
const SIDE_BY_SIDE = 4

export interface UploaderDeps extends StoreFileDeps {
  /** The setting `default`. */
  readonly defaultId: string | undefined
  /** Destinations that can't be used. A request for one of them gets the reason. */
  readonly leftOut: readonly LeftOut[]
  readonly payloads: Payloads
  /** For destinations that have no spool. */
  readonly spool: Spool
  readonly sources: SourceSettings
  /** Upload slots, by destination. Uploaders of earlier configurations use the same ones, so their requests count. */
  readonly slots: NamedSlots
  /** Slots for requests whose inputs are fetched from a URL or the clipboard. */
  readonly fetches: NamedSlots
  readonly store: Store
  /** The locks of this process. Uploaders of earlier configurations use the same ones. */
  readonly locker: Locker
  readonly finalizer: Finalizer
  /** Hooks of uploads that begin with this configuration. */
  readonly hooks: readonly Hook[]
  readonly idempotency: Idempotency
  readonly quotas: Quotas
  /** Destinations at which files expire, `provider/configName`. */
  readonly withExpiry: ReadonlySet<string>
  /** Whether other servers use the same database. Object keys are then locked in it. */
  readonly isStoreShared: boolean
  now(): Date
}

export interface UploadRequest {
  readonly destination: Destination
  readonly inputs: readonly Input[]
  readonly caller: Caller
  readonly requestId: string
  /** URL of this server as the client sees it, with a final slash. Relative URLs of providers start there. */
  readonly baseUrl: string
  /** Aborts transfers that have not ended. */
  readonly signal: AbortSignal
  readonly options?: UploadOptions
  /** The job is found by it when the client repeats the request. */
  readonly idempotencyKey?: string
  /** What this request shares with earlier attempts with the same `Idempotency-Key`. */
  readonly retryContext?: RetryContext | undefined
  /** Rejects a payload by throwing an error, before it is stored. */
  accept?(payload: Payload): void
  /** Called when an input is done. The order is not that of the inputs. */
  onOutcome?(outcome: Outcome): void
}

/** The message that a client gets for a bug. */
const INTERNAL = 'An internal error occurred. See the log of the server.'

/** Uploads inputs to destinations. It does not depend on HTTP. */
export interface Uploader {
  readonly destinations: readonly Destination[]
  readonly payloads: Payloads
  readonly finalizer: Finalizer
  readonly idempotency: Idempotency
  readonly quotas: Quotas
  readonly store: Store
  /** Requests that upload and requests that wait, by `provider/configName`. */
  readonly slots: NamedSlots
  /** @throws UploadError `unknown_destination`, `ambiguous_destination`, `destination_forbidden` */
  choose(choice: DestinationChoice, caller?: Pick<Caller, 'destinations'>): Destination
  /** Whether a local client could upload this path. Always false for remote clients: it reveals which files exist. */
  isReadable(path: string, caller: Caller): Promise<boolean>
  /** Where payloads for a destination are spooled. */
  spoolFor(destination: Destination): Spool
  /**
   * Returns one outcome for each input, in order. A failed input does not stop the others. The payload of a form input is
   * disposed of with its outcome. An error leaves those without an outcome to `discard`, or to the end of the spool.
   *
   * @throws FinalizationPending if everything is stored and a post-upload step fails
   * @throws UploadError if the job can't be saved; then nothing is uploaded
   */
  upload(request: UploadRequest): Promise<Outcome[]>
  /** Disposes of the payloads of form inputs. */
  discard(inputs: readonly Input[]): Promise<void>
  /** @param graceMs time that running work gets to finish; default 0 */
  close(graceMs?: number): Promise<void>
}

export function createUploader(deps: UploaderDeps): Uploader {
  const { destinations, payloads, finalizer, idempotency, quotas, store, slots } = deps
  return {
    destinations,
    payloads,
    finalizer,
    idempotency,
    quotas,
    store,
    slots,
    choose: (choice, caller) =>
      chooseDestination(destinations, deps.defaultId, choice, caller?.destinations, deps.leftOut),
    isReadable: (path, caller) => isReadable(path, caller, deps.sources),
    spoolFor: destination => spoolFor(destination, deps),
    upload: request => upload(request, deps),
    discard,
    async close() {
      await Promise.allSettled(destinations.map(({ target }) => target.close?.()))
    },
  }
}

async function upload(request: UploadRequest, deps: UploaderDeps): Promise<Outcome[]> {
  const { finalizer } = deps
  const job = newJob(request, finalizer.owner, deps.now())
  const share = deps.quotas.begin(request.caller.quotas)
  const outcomes = await deliverQueued(job, request, share, deps)
  const isWhole = outcomes.every(outcome => outcome.ok)
  const completed = finalizer.complete(job, filesOf(outcomes), { isWhole, hooks: deps.hooks, share })
  // If some files failed, the response says so. Their job does not fail because its history can only be saved later.
  await (isWhole ? completed : completed.catch(() => {}))
  return outcomes
}

/** A request that fetches its inputs holds no upload slot meanwhile, because a slow source would block other uploads. */
async function deliverQueued(
  job: Job,
  request: UploadRequest,
  share: QuotaShare | undefined,
  deps: UploaderDeps,
): Promise<Outcome[]> {
  const { inputs, signal } = request
  const slot = deps.slots.of(job.destination)
  if (!inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard'))
    return slot.run(() => deliverAll(job, request, share, work => work(), deps), signal)
  const fetching = deps.fetches.of(job.destination)
  return fetching.run(() => deliverAll(job, request, share, slot.shareOne(signal), deps), signal)
}

/** Saves the job, then uploads each input. The stored files are saved even if the client has disconnected. */
async function deliverAll(
  job: Job,
  request: UploadRequest,
  share: QuotaShare | undefined,
  inSlot: RunInSlot,
  deps: UploaderDeps,
): Promise<Outcome[]> {
  const { baseUrl, signal, retryContext, options } = request
  const { finalizer } = deps
  await finalizer.begin(job, request.idempotencyKey, retryContext?.reservation)
  const locks = createLocks(deps.locker)
  const stored = createLocks(createStoreLocker(deps.store, deps.locker, job))
  const shared: StoreFileRequest = {
    lockerOf: at => (needsStoreLock(at, deps) ? stored : at.needsNoLock ? undefined : locks),
    end: expiresAt(request.destination, options?.expires, job.createdAt) ?? 'never',
    baseUrl,
    signal,
    retryContext,
    now: new Date(retryContext?.time ?? job.createdAt),
  }
  const done: Outcome[] = []
  try {
    return await mapConcurrently(request.inputs, SIDE_BY_SIDE, async (input, index) => {
      const outcome = await uploadOne(input, index, request, shared, share, inSlot, deps)
      done.push(outcome)
      request.onOutcome?.(outcome)
      return outcome
    }).finally(() => Promise.all([locks.end(), stored.end()]))
  } catch (error) {
    await finalizer.complete(job, filesOf(done), { isWhole: false, share }).catch(() => {})
    throw error
  }
}

/** Object keys are locked in the database if another server, or the removal of expired files, may use the same ones. */
function needsStoreLock(
  destination: Destination,
  { isStoreShared, destinations, withExpiry }: UploaderDeps,
): boolean {
  if (isStoreShared && !destination.isContentNamed) return true
  return (
    withExpiry.size > 0 && destinations.some(one => withExpiry.has(idOf(one)) && mayMeet(one, destination))
  )
}

/** @throws the reason of the request's signal; every other failure is the outcome */
async function uploadOne(
  input: Input,
  index: number,
  request: UploadRequest,
  shared: StoreFileRequest,
  share: QuotaShare | undefined,
  inSlot: RunInSlot,
  deps: UploaderDeps,
): Promise<Outcome> {
  const { destination, caller, signal, options = {} } = request
  const { origin } = input
  let payload: Payload | undefined
  let giveBack: (() => void) | undefined
  try {
    const given = await obtain(
      input,
      caller,
      deps.payloads,
      spoolFor(destination, deps),
      deps.sources,
      signal,
    )
    payload = given
    request.accept?.(given)
    assertType(given, caller)
    const storedAt = await inSlot(async () => {
      const changes = withRequestedOptions(destination.pictures, options)
      const changed = changes ? await change(given, changes, request, deps) : given
      payload = changed
      giveBack = await share?.take(changed.size, changed.name)
      const seed = request.retryContext?.seed && `${request.retryContext.seed} ${index}`
      const user = caller.user ?? caller.name
      const facts = { path: options.path, user, fitsType: caller.types !== undefined, seed }
      return storeFile(changed, facts, destination, shared, deps)
    })
    const { key, url, deleteUrl, location, mirrors, end } = storedAt
    const { size, contentType, sha256 } = payload
    // The history keeps all of this: see store/history-columns.ts. Listed one by one, because V8 copies objects slowly.
    return {
      ok: true,
      index,
      origin,
      key,
      url,
      deleteUrl,
      location,
      size,
      contentType,
      sha256,
      expiresAt: end === 'never' ? undefined : end,
      destination: storedAt.destination === idOf(destination) ? undefined : storedAt.destination,
      mirrors,
    }
  } catch (error) {
    giveBack?.()
    signal.throwIfAborted()
    return { ok: false, index, origin, error: asUploadError(error, INTERNAL) }
  } finally {
    await payload?.dispose()
  }
}

/** Processes an image as the destination and the request specify. Other files are returned unchanged. */
async function change(
  payload: Payload,
  options: PictureOptions,
  { destination, signal }: UploadRequest,
  deps: UploaderDeps,
): Promise<Payload> {
  const { changePicture } = await import('../pictures/change.ts')
  const { payloads, sources } = deps
  const changing = { payloads, spool: spoolFor(destination, deps), fileSize: sources.fileSize }
  const changed = await changePicture(payload, options, changing, signal)
  if (changed !== payload) await payload.dispose()
  return changed
}

function spoolFor({ target }: Destination, { spool }: UploaderDeps): Spool {
  return target.spool ?? spool
}

function filesOf(outcomes: readonly Outcome[]): StoredFile[] {
  const stored: StoredFile[] = []
  for (const outcome of outcomes) {
    if (!outcome.ok) continue
    const { ok, ...file } = outcome
    stored.push({ ...file, origin: keptOrigin(file.origin) })
  }
  return stored.sort((a, b) => a.index - b.index)
}

/** Payloads of uploaded inputs are disposed of already. A second time has no effect. */
async function discard(inputs: readonly Input[]): Promise<void> {
  for (const input of inputs) {
    if (input.kind === 'form' && 'dispose' in input.payload) await input.payload.dispose()
  }
}
