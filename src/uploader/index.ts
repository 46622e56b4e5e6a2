import { isStorageFull, UploadError } from '../errors.ts'
import { inOrder } from '../flow/in-order.ts'
import type { InPlace, NamedSlots } from '../flow/slots.ts'
import type { Payload, Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { PictureOptions } from '../pictures/options.ts'
import { withWish } from '../pictures/wish.ts'
import type { Job, Store, StoredFile } from '../store/contract.ts'
import type { Claims } from './delivery/claims.ts'
import {
  type Choice,
  chooseDestination,
  type Destination,
  idOf,
  type LeftOut,
} from './delivery/destinations.ts'
import { expiresAt } from './delivery/expiry.ts'
import { createHold } from './delivery/holds.ts'
import { type PlaceDeps, type PlaceRequest, place } from './delivery/place.ts'
import { type Caller, type Input, keptOrigin, type Outcome, type Wishes } from './input.ts'
import type { Finalizer } from './jobs/finalizer.ts'
import type { Hook } from './jobs/hooks.ts'
import type { Idempotency } from './jobs/idempotency.ts'
import { newJob } from './jobs/new-job.ts'
import { obtain, type SourceSettings } from './sources/index.ts'

/** Files of one request that are on their way at the same time. */
const SIDE_BY_SIDE = 4

export interface UploaderDeps {
  readonly destinations: readonly Destination[]
  /** The setting `default`. */
  readonly defaultId: string | undefined
  /** What requests may name and is told why it can't be used. */
  readonly leftOut: readonly LeftOut[]
  readonly payloads: Payloads
  /** For destinations without a spool of their own. */
  readonly spool: Spool
  readonly sources: SourceSettings
  readonly limits: {
    readonly deliveryTimeoutMs: number
    readonly retries: number
  }
  /** For deliveries, by destination. Shared with the uploaders before, whose requests count, too. */
  readonly slots: NamedSlots
  /** The same for requests whose inputs come from elsewhere. */
  readonly fetches: NamedSlots
  readonly store: Store
  readonly finalizer: Finalizer
  /** What follows an upload that begins here. */
  readonly hooks: readonly Hook[]
  readonly idempotency: Idempotency
  /** Destinations at which files go again, `provider/configName`. */
  readonly swept: ReadonlySet<string>
  /** Whether other servers have the same store, which then tells them whose a key is. */
  readonly isStoreShared: boolean
  now(): Date
  /** Hides secrets. */
  mask(text: string): string
  /** A line for the operator. */
  warn(message: string, details: object): void
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
  /** What earlier attempts of the same key may have stored. */
  readonly claims?: Claims | undefined
  /** Refuses a payload by throwing, before any of it is stored. */
  accept?(payload: Payload): void
  /** Called as each input is done, in whatever order. */
  onOutcome?(outcome: Outcome): void
}

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
  choose(choice: Choice, caller: Caller): Destination
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
  const { store, finalizer, slots } = deps
  const spoolFor = (destination: Destination) => destination.target.spool ?? deps.spool
  const placeDeps: PlaceDeps = {
    ...deps,
    limits: { timeoutMs: deps.limits.deliveryTimeoutMs, retries: deps.limits.retries },
    history: store,
  }

  async function uploadOne(
    input: Input,
    index: number,
    request: UploadRequest,
    shared: PlaceRequest & { end: Pick<StoredFile, 'expiresAt'>; inSlot: InPlace },
  ): Promise<Outcome> {
    const { destination, caller, signal } = request
    const { origin } = input
    let payload: Payload | undefined
    try {
      const given = await obtain(input, caller, deps.payloads, spoolFor(destination), deps.sources, signal)
      payload = given
      request.accept?.(given)
      const { destination: id, ...where } = await shared.inSlot(async () => {
        const changes = withWish(destination.pictures, request.wishes ?? {})
        const changed = changes ? await change(given, changes, request) : given
        payload = changed
        return place(changed, destination, shared, placeDeps)
      })
      const { size, contentType, sha256 } = payload
      const file = { ok: true, index, origin, ...where, size, contentType, sha256, ...shared.end } as const
      return id === idOf(destination) ? file : { ...file, destination: id }
    } catch (error) {
      signal.throwIfAborted()
      return { ok: false, index, origin, error: asUploadError(error) }
    } finally {
      await payload?.dispose()
    }
  }

  /** Does to a picture what destination and request say; anything else comes back as it is. */
  async function change(
    payload: Payload,
    options: PictureOptions,
    { destination, signal }: UploadRequest,
  ): Promise<Payload> {
    const { changePicture } = await import('../pictures/change.ts')
    const { fileSize } = deps.sources
    const changed = await changePicture(
      payload,
      options,
      { payloads: deps.payloads, spool: spoolFor(destination), fileSize },
      signal,
    )
    if (changed !== payload) await payload.dispose()
    return changed
  }

  const isHeld = (id: string) =>
    deps.swept.has(id) ||
    (deps.isStoreShared && !deps.destinations.some(one => one.immutable && idOf(one) === id))

  /** Delivers every input of a job that is written down. What arrived is written down even when the client has gone. */
  async function deliverAll(job: Job, request: UploadRequest, inSlot: InPlace): Promise<Outcome[]> {
    await finalizer.begin(job, request.idempotencyKey)
    const done: Outcome[] = []
    const { baseUrl, signal, claims, wishes } = request
    const until = expiresAt(request.destination, wishes?.expires, job.createdAt)
    const shared = {
      hold: createHold(store, job, isHeld),
      end: until === undefined ? {} : { expiresAt: until },
      baseUrl,
      signal,
      claims,
      now: new Date(job.createdAt),
      facts: { path: wishes?.path },
      releases: [] as (() => void)[],
      inSlot,
    }
    try {
      return await inOrder(request.inputs, SIDE_BY_SIDE, async (input, index) => {
        const outcome = await uploadOne(input, index, request, shared)
        done.push(outcome)
        request.onOutcome?.(outcome)
        return outcome
      })
    } catch (error) {
      await finalizer.complete(job, filesOf(done), false).catch(() => {})
      throw error
    } finally {
      for (const release of shared.releases) release()
    }
  }

  /** Others may take long to hand a file out: who waits for them has no slot, which somebody else could deliver in. */
  async function deliverInTurn(job: Job, request: UploadRequest): Promise<Outcome[]> {
    const { inputs, signal } = request
    const slot = slots.of(job.destination)
    if (!inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard'))
      return slot.run(() => deliverAll(job, request, work => work()), signal)
    const fetching = deps.fetches.of(job.destination)
    return fetching.run(() => deliverAll(job, request, slot.share(signal)), signal)
  }

  return {
    destinations: deps.destinations,
    payloads: deps.payloads,
    finalizer,
    idempotency: deps.idempotency,
    store,
    slots,
    choose: (choice, caller) =>
      chooseDestination(deps.destinations, deps.defaultId, choice, caller.destinations, deps.leftOut),
    spoolFor,
    async upload(request) {
      const job = newJob(request, finalizer.owner, deps.now())
      try {
        const outcomes = await deliverInTurn(job, request)
        const isWhole = outcomes.every(outcome => outcome.ok)
        const completed = finalizer.complete(job, filesOf(outcomes), isWhole, deps.hooks)
        // Of a job that failed in part the answer tells; its history is saved later when it can't be now.
        await (isWhole ? completed : completed.catch(() => {}))
        return outcomes
      } finally {
        await discard(request.inputs)
      }
    },
    discard,
    async close() {
      await Promise.allSettled(deps.destinations.map(destination => destination.target.close?.()))
    },
  }
}

function filesOf(outcomes: readonly Outcome[]): StoredFile[] {
  return outcomes
    .flatMap(outcome => {
      if (!outcome.ok) return []
      const { ok: _, ...file } = outcome
      return [{ ...file, origin: keptOrigin(file.origin) }]
    })
    .sort((a, b) => a.index - b.index)
}

/** What was uploaded has been given back already; a second time does no harm. */
async function discard(inputs: readonly Input[]): Promise<void> {
  for (const input of inputs) {
    if (input.kind === 'form' && 'dispose' in input.payload) await input.payload.dispose()
  }
}

function asUploadError(error: unknown): UploadError {
  if (error instanceof UploadError) return error
  if (isStorageFull(error)) {
    return new UploadError(
      'insufficient_storage',
      'The disk of upload-server is full. Free some space there, then send it again.',
      { cause: error },
    )
  }
  return new UploadError('internal_error', 'Something went wrong inside upload-server; its log says what.', {
    cause: error,
  })
}
