import { randomUUID } from 'node:crypto'
import { asUploadError, type ErrorCode, UploadError } from '../errors.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { poll } from '../flow/poll.ts'
import type { Payload } from '../payload/index.ts'
import type { Claimant } from '../store/claims.ts'
import type { FailedFile, StoredFile } from '../store/contract.ts'
import { type Attempted, earlierRequest } from '../store/requests.ts'
import type { Known, NewUpload } from '../store/upload-rows.ts'
import { type Begun, begin } from '../store/uploads.ts'
import type { UploaderDeps } from './app.ts'
import { deliver } from './deliver.ts'
import { idOf } from './destinations.ts'
import type { Outcome } from './input.ts'
import { withLinks } from './links.ts'
import { type Attempt, type Planned, plan } from './plan.ts'
import { quotaExceeded } from './quota.ts'
import { discard, newUpload, spoolFor, type UploadRequest } from './request.ts'
import { obtain } from './sources/index.ts'
import type { Delivery } from './store-at.ts'

/** Files of one request that are fetched or uploaded at the same time. */
const SIDE_BY_SIDE = 4
/** The message that a client gets for a bug. */
const INTERNAL = "An internal error occurred. See the server's log."

export interface Uploaded {
  /** One for each input, in order. A failed input does not stop the others. */
  readonly outcomes: readonly Outcome[]
  /** Whether they are those of an earlier request with the same idempotency key. */
  readonly isRepeated: boolean
}

type Failure = Extract<Outcome, { ok: false }>

/** The files of a request before they are delivered. */
interface Plans {
  readonly files: readonly Planned[]
  readonly failed: readonly Failure[]
}

/**
 * Uploads the inputs of a request. Their payloads are disposed of.
 *
 * @throws FinalizationPending if everything is stored and a post-upload step fails
 * @throws UploadError if the upload can't be saved; then nothing is uploaded
 * @throws the reason of the signal, if nothing was sent
 */
export async function upload(request: UploadRequest, deps: UploaderDeps): Promise<Uploaded> {
  const { signal, abortsSending } = request
  const payloads: Payload[] = []
  const within = abortsSending ? { ...deps, ending: signal } : deps
  try {
    return await poll(() => attempt(request, payloads, within), signal)
  } finally {
    for (const payload of payloads) await payload.dispose()
    await discard(request.inputs)
  }
}

/**
 * @param payloads gets those that must be disposed of
 * @returns undefined if another request with the same idempotency key is being handled. Ask again
 */
async function attempt(
  request: UploadRequest,
  payloads: Payload[],
  deps: UploaderDeps,
): Promise<Uploaded | undefined> {
  const { idempotency: key, destination, signal } = request
  const now = Date.now()
  if (key) await deps.finalizer.saveFor(key.key)
  const earlier = key && (await deps.database.read(db => earlierRequest(db, key, now)))
  if (earlier?.known) return answerKnown(earlier.known, request, deps)
  const seed = earlier?.seed ?? randomUUID()
  const first: Attempt = { time: earlier?.time ?? now, seed: key && seed }
  const plans = await planAll(request, first, payloads, deps)
  const origins = request.inputs.map(({ origin }) => origin)
  const started = newUpload(request, origins, deps.owner.id, now)
  const prepared = { ...plans, started, key: key && { ...key, seed } }
  const result = await deps.slots.of(idOf(destination)).run(() => deliverAll(prepared, request, deps), signal)
  return 'is' in result ? answerKnown(result, request, deps) : result
}

/** The outcome of an earlier request. @returns undefined if it is not known yet */
async function answerKnown(
  { upload, fingerprint }: Known,
  request: UploadRequest,
  deps: UploaderDeps,
): Promise<Uploaded | undefined> {
  if (fingerprint !== request.idempotency?.fingerprint)
    throw new UploadError(
      'idempotency_key_reused',
      'This Idempotency-Key belongs to another request. Send a new Idempotency-Key with a new request.',
    )
  if (upload.state === 'uploading') return undefined
  const ended = upload.state === 'stored' ? await deps.finalizer.runHooks(upload.id, request.baseUrl) : upload
  if (!ended || ended === 'elsewhere') return undefined
  const failed = ended.failed.map(one => toFailure(one, request))
  return { outcomes: outcomesOf(ended.files, failed, request, deps), isRepeated: true }
}

/** Fetches the inputs and plans their objects. This uses no upload slot, because a slow source would block other uploads. */
async function planAll(
  request: UploadRequest,
  attempt: Attempt,
  payloads: Payload[],
  deps: UploaderDeps,
): Promise<Plans> {
  const { inputs, destination, signal } = request
  const files: Planned[] = []
  const failed: Failure[] = []
  const planEach = () =>
    mapConcurrently(inputs, SIDE_BY_SIDE, async (input, index) => {
      try {
        const payload = await obtain(input, request, spoolFor(destination, deps), deps)
        payloads.push(payload)
        const planned = await plan(payload, index, { request, attempt, deps })
        payloads.push(planned.payload)
        files.push(planned)
      } catch (error) {
        signal.throwIfAborted()
        failed.push(failure(index, input.origin, error))
      }
    })
  const isFetched = inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard')
  await (isFetched ? deps.fetches.of(idOf(destination)).run(planEach, signal) : planEach())
  return { files: files.length > 1 ? shareEqual(files) : files, failed }
}

/** Files with the same content and object keys are sent once: the later ones need no objects. */
function shareEqual(unsorted: readonly Planned[]): Planned[] {
  const files = unsorted.toSorted((one, other) => one.index - other.index)
  const first = new Map<string, Planned>()
  return files.map(file => {
    const id = JSON.stringify(file.wanted)
    const twin = first.get(id)
    if (twin) return { ...file, wanted: [], twin }
    first.set(id, file)
    return file
  })
}

async function deliverAll(
  { started, key, files, failed: unplanned }: Plans & { started: NewUpload; key: Attempted | undefined },
  request: UploadRequest,
  deps: UploaderDeps,
): Promise<Uploaded | Known> {
  const { database, owner, finalizer, hooks } = deps
  const { caller, inputs, signal, baseUrl } = request
  const { quotas = [] } = caller
  await owner.keepAlive()
  const claimant: Claimant = { id: started.id, claimed: new Set() }
  const begun = await begin(database, started, claimant, files, { request: key, quotas }).catch(error => {
    finalizer.drop(started)
    throw error
  })
  if (begun.is === 'known') return begun

  const delivery: Delivery = {
    ...{ deps, upload: started, claimant, quotas, signal },
    ...{ open: new Set(), others: [], waiting: [] },
  }
  const { stored, failed } = await deliverEach(begun.files, delivery)
  failed.push(...unplanned)
  const state = failed.length > 0 ? 'failed' : hooks.length > 0 ? 'stored' : 'done'
  const saving = finalizer.save(
    started,
    {
      state,
      files: stored,
      others: delivery.others,
      failed: failed.map(({ index, error }) => ({
        index,
        code: error.code,
        message: deps.mask(error.message),
      })),
      ...{ claimed: claimant.claimed, open: delivery.open },
    },
    key?.key,
  )
  const saved = await saving.finally(() => passToProcess(delivery))
  for (const index of saved.lost) failed.push(failure(index, inputs[index]?.origin ?? '', lost()))
  const outcomes = outcomesOf(saved.files, failed, request, deps)
  const isCancelled = (outcome: Outcome) =>
    signal.aborted && !outcome.ok && outcome.error.cause === signal.reason
  for (const outcome of outcomes) if (!isCancelled(outcome)) request.onOutcome?.(outcome)
  if (saved.files.length === 0) signal.throwIfAborted()
  if (state === 'stored' && saved.lost.length === 0) await finalizer.runHooks(started.id, baseUrl, hooks)
  return { outcomes, isRepeated: false }
}

async function deliverEach(
  files: Extract<Begun<Planned>, { is: 'begun' }>['files'],
  delivery: Delivery,
): Promise<{ readonly stored: StoredFile[]; readonly failed: Failure[] }> {
  const [stored, failed]: [StoredFile[], Failure[]] = [[], []]
  const delivering = new Map<Planned, Promise<StoredFile>>()
  await mapConcurrently(files, SIDE_BY_SIDE, async one => {
    const { index, origin, twin } = one.file
    try {
      if ('full' in one) throw quotaExceeded(one.full)
      const sending = (twin && delivering.get(twin)) ?? deliver(one.file, one.objects, delivery)
      delivering.set(one.file, sending)
      stored.push({ ...(await sending), index, origin })
    } catch (error) {
      failed.push(failure(index, origin, error))
    }
  })
  return { stored: stored.sort((one, other) => one.index - other.index), failed }
}

/** The upload has ended. The process goes on with what is left of it. */
function passToProcess(delivery: Delivery): void {
  const { claimant, deps, waiting = [] } = delivery
  delivery.waiting = undefined
  claimant.id = deps.owner.id
  for (const work of waiting) deps.background.run(work())
}

const failure = (index: number, origin: string, error: unknown): Failure => ({
  ...{ ok: false, index, origin },
  error: asUploadError(error, INTERNAL),
})

function lost(): UploadError {
  return new UploadError(
    'destination_failed',
    'Another upload has stored other content under the same object key, because this server did not run for a while. Try again.',
    { retryAfterS: 1 },
  )
}

/** A saved failure. The code is one of this program. */
const toFailure = ({ index, code, message }: FailedFile, { inputs }: UploadRequest): Failure =>
  failure(index, inputs[index]?.origin ?? '', new UploadError(code as ErrorCode, message))

/** The outcomes of an upload in the order of its inputs, with their origins as the client sent them, and its links. */
function outcomesOf(
  files: readonly StoredFile[],
  failed: readonly Failure[],
  { inputs, baseUrl }: UploadRequest,
  { destinations }: UploaderDeps,
): Outcome[] {
  const stored = files.map((file): Outcome => {
    const linked = withLinks(file, baseUrl, destinations)
    return { ok: true, ...linked, origin: inputs[file.index]?.origin ?? '' }
  })
  return [...stored, ...failed].sort((one, other) => one.index - other.index)
}
