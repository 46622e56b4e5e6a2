import { asUploadError } from '../errors.ts'
import { inOrder } from '../flow/in-order.ts'
import type { InPlace, NamedSlots } from '../flow/slots.ts'
import type { Payload, Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { PictureOptions } from '../pictures/options.ts'
import { withWish } from '../pictures/wish.ts'
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
import { expiring, type PlaceDeps, type PlaceRequest, place } from './delivery/place.ts'
import { type Caller, type Input, keptOrigin, type Outcome, type Wishes } from './input.ts'
import type { Finalizer } from './jobs/finalizer.ts'
import type { Hook } from './jobs/hooks.ts'
import type { Idempotency } from './jobs/idempotency.ts'
import { newJob } from './jobs/new-job.ts'
import { isReadable, obtain, type SourceSettings } from './sources/index.ts'

/** Files of one request that are on their way at the same time. */
const SIDE_BY_SIDE = 4

export interface UploaderDeps extends PlaceDeps {
  /** The setting `default`. */
  readonly defaultId: string | undefined
  /** What requests may name and is told why it can't be used. */
  readonly leftOut: readonly LeftOut[]
  readonly payloads: Payloads
  /** For destinations without a spool of their own. */
  readonly spool: Spool
  readonly sources: SourceSettings
  /** For deliveries, by destination. Shared with the uploaders before, whose requests count, too. */
  readonly slots: NamedSlots
  /** The same for requests whose inputs come from elsewhere. */
  readonly fetches: NamedSlots
  readonly store: Store
  /** Of this process. Shared with the uploaders before. */
  readonly locker: Locker
  readonly finalizer: Finalizer
  /** What follows an upload that begins here. */
  readonly hooks: readonly Hook[]
  readonly idempotency: Idempotency
  /** Destinations at which files go again, `provider/configName`. */
  readonly swept: ReadonlySet<string>
  /** Whether other servers have the same store, which then tells them whose a key is. */
  readonly isStoreShared: boolean
  now(): Date
}

export interface UploadRequest {
  readonly destination: Destination
  readonly inputs: readonly Input[]
  readonly caller: Caller
  readonly requestId: string
  /** Address of this server as the caller sees it, with a final slash; relative URLs of providers start there. */
  readonly baseUrl: string
  /** Aborts what has not been delivered. */
  readonly signal: AbortSignal
  readonly wishes?: Wishes
  /** Leads repetitions to the job. */
  readonly idempotencyKey?: string
  /** What it shares with earlier attempts of the same key. */
  readonly retryContext?: RetryContext | undefined
  /** Refuses a payload by throwing, before any of it is stored. */
  accept?(payload: Payload): void
  /** Called as each input is done, in whatever order. */
  onOutcome?(outcome: Outcome): void
}

/** What the client is told of a defect. */
const INTERNAL = 'An internal error occurred. See the log of the server.'

/** Takes inputs to destinations. Knows nothing of HTTP. */
export interface Uploader {
  readonly destinations: readonly Destination[]
  readonly payloads: Payloads
  readonly finalizer: Finalizer
  readonly idempotency: Idempotency
  readonly store: Store
  /** Requests that are delivered, and those that wait for it, by `provider/configName`. */
  readonly slots: NamedSlots
  /** @throws UploadError `unknown_destination`, `ambiguous_destination`, `destination_forbidden` */
  choose(choice: DestinationChoice, caller: Caller): Destination
  /** Whether a program of this machine could upload that path. To all others the answer is no: it says what exists. */
  isReadable(path: string, caller: Caller): Promise<boolean>
  /** Where payloads for a destination are spooled. */
  spoolFor(destination: Destination): Spool
  /**
   * One outcome for each input, in order. One that fails does not stop the others. Payloads of form inputs are disposed
   * of in any case.
   *
   * @throws FinalizationPending when everything is stored and what follows fails
   * @throws UploadError when the job can't be written down: nothing is uploaded then
   */
  upload(request: UploadRequest): Promise<Outcome[]>
  /** Gives back what form inputs hold that are not uploaded. */
  discard(inputs: readonly Input[]): Promise<void>
  /** @param graceMs for how long what runs may go on; default: not at all */
  close(graceMs?: number): Promise<void>
}

export function createUploader(deps: UploaderDeps): Uploader {
  const { destinations, payloads, finalizer, idempotency, store, slots } = deps
  return {
    destinations,
    payloads,
    finalizer,
    idempotency,
    store,
    slots,
    choose: (choice, caller) =>
      chooseDestination(destinations, deps.defaultId, choice, caller.destinations, deps.leftOut),
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
  try {
    const outcomes = await deliverInTurn(job, request, deps)
    const isWhole = outcomes.every(outcome => outcome.ok)
    const completed = finalizer.complete(job, filesOf(outcomes), isWhole, deps.hooks)
    // Of a job that failed in part the answer tells; its history is saved later when it can't be now.
    await (isWhole ? completed : completed.catch(() => {}))
    return outcomes
  } finally {
    await discard(request.inputs)
  }
}

/** Others may take long to hand a file out: who waits for them has no slot, which somebody else could deliver in. */
async function deliverInTurn(job: Job, request: UploadRequest, deps: UploaderDeps): Promise<Outcome[]> {
  const { inputs, signal } = request
  const slot = deps.slots.of(job.destination)
  if (!inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard'))
    return slot.run(() => deliverAll(job, request, work => work(), deps), signal)
  const fetching = deps.fetches.of(job.destination)
  return fetching.run(() => deliverAll(job, request, slot.share(signal), deps), signal)
}

/** Delivers every input of a job that is written down. What arrived is written down even when the client has gone. */
async function deliverAll(
  job: Job,
  request: UploadRequest,
  inSlot: InPlace,
  deps: UploaderDeps,
): Promise<Outcome[]> {
  const { baseUrl, signal, retryContext, wishes } = request
  const { finalizer } = deps
  await finalizer.begin(job, request.idempotencyKey)
  const locks = createLocks(deps.locker)
  const stored = createLocks(createStoreLocker(deps.store, deps.locker, job))
  const shared: PlaceRequest = {
    lockerOf: at => (isHeld(at, deps) ? stored : locks),
    end: expiresAt(request.destination, wishes?.expires, job.createdAt) ?? 'never',
    baseUrl,
    signal,
    retryContext,
    now: new Date(retryContext?.time ?? job.createdAt),
  }
  const done: Outcome[] = []
  try {
    return await inOrder(request.inputs, SIDE_BY_SIDE, async (input, index) => {
      const outcome = await uploadOne(input, index, request, shared, inSlot, deps)
      done.push(outcome)
      request.onOutcome?.(outcome)
      return outcome
    }).finally(() => Promise.all([locks.end(), stored.end()]))
  } catch (error) {
    await finalizer.complete(job, filesOf(done), false).catch(() => {})
    throw error
  }
}

/** Where files go again, whatever destination they came by, or another server stores others under the same keys. */
function isHeld(destination: Destination, { isStoreShared, destinations, swept }: UploaderDeps): boolean {
  if (isStoreShared && !destination.immutable) return true
  return destinations.some(one => swept.has(idOf(one)) && mayMeet(one, destination))
}

/** @throws the reason of the request's signal; whatever else fails is the outcome */
async function uploadOne(
  input: Input,
  index: number,
  request: UploadRequest,
  shared: PlaceRequest,
  inSlot: InPlace,
  deps: UploaderDeps,
): Promise<Outcome> {
  const { destination, caller, signal, wishes = {} } = request
  const { origin } = input
  let payload: Payload | undefined
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
    const placed = await inSlot(async () => {
      const changes = withWish(destination.pictures, wishes)
      const changed = changes ? await change(given, changes, request, deps) : given
      payload = changed
      const seed = request.retryContext?.seed && `${request.retryContext.seed} ${index}`
      return place(changed, destination, { ...shared, facts: { path: wishes.path, seed } }, deps)
    })
    const { destination: id, end, ...where } = placed
    const { size, contentType, sha256 } = payload
    // The history keeps all of this: see store/history-columns.ts.
    const file = { ok: true, index, origin, ...where, size, contentType, sha256, ...expiring(end) } as const
    return id === idOf(destination) ? file : { ...file, destination: id }
  } catch (error) {
    signal.throwIfAborted()
    return { ok: false, index, origin, error: asUploadError(error, INTERNAL) }
  } finally {
    await payload?.dispose()
  }
}

/** Does to a picture what destination and request say; anything else comes back as it is. */
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
  const stored = outcomes.flatMap(outcome => {
    if (!outcome.ok) return []
    const { ok, ...file } = outcome
    return [{ ...file, origin: keptOrigin(file.origin) }]
  })
  return stored.sort((a, b) => a.index - b.index)
}

/** What was uploaded has been given back already; a second time does no harm. */
async function discard(inputs: readonly Input[]): Promise<void> {
  for (const input of inputs) {
    if (input.kind === 'form' && 'dispose' in input.payload) await input.payload.dispose()
  }
}
