import { randomUUID } from 'node:crypto'
import { asUploadError, type ErrorCode, UploadError } from '../errors.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { poll } from '../flow/poll.ts'
import type { Payload } from '../payload/index.ts'
import type { Claimant } from '../store/claims.ts'
import type { StoredFile, Upload } from '../store/contract.ts'
import { type Attempted, earlierRequest } from '../store/requests.ts'
import type { Known } from '../store/upload-rows.ts'
import { begin } from '../store/uploads.ts'
import type { Uploader } from './app.ts'
import { deliver } from './deliver.ts'
import type { Input, Outcome } from './input.ts'
import { withLinks } from './links.ts'
import { type Attempt, type Planned, plan } from './plan.ts'
import { quotaExceeded } from './quota.ts'
import { newUpload, type UploadRequest } from './request.ts'
import { obtain } from './sources/index.ts'
import { type Delivery, endDelivery } from './store-at.ts'

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

/** The inputs of a request before they are delivered, in order. */
interface Plans {
  readonly files: readonly Planned[]
  readonly failed: readonly Failure[]
}

/**
 * Uploads the inputs of a request.
 *
 * @throws FinalizationPending if everything is stored and a post-upload step fails
 * @throws UploadError if the upload can't be saved; then nothing is uploaded
 * @throws the reason of the signal, if nothing was sent
 */
export async function upload(request: UploadRequest, uploader: Uploader): Promise<Uploaded> {
  const { signal, abortsSending } = request
  const payloads: Payload[] = []
  const within = abortsSending ? { ...uploader, ending: signal } : uploader
  try {
    return await poll(() => attempt(request, payloads, within), signal)
  } finally {
    for (const payload of payloads) await payload.dispose()
  }
}

/**
 * @param payloads gets those that must be disposed of
 * @returns undefined if another request with the same idempotency key is being handled. Ask again
 */
async function attempt(
  request: UploadRequest,
  payloads: Payload[],
  uploader: Uploader,
): Promise<Uploaded | undefined> {
  const { idempotency: key, destination, signal } = request
  const now = Date.now()
  if (key) await uploader.finalizer.saveFor(key.key)
  const earlier = key && (await uploader.database.read(db => earlierRequest(db, key, now)))
  if (earlier?.known) return answerKnown(earlier.known, request, uploader)
  const attempted = key && { ...key, seed: earlier?.first?.seed ?? randomUUID() }
  const first: Attempt = { time: earlier?.first?.time ?? now, seed: attempted?.seed }
  const plans = await planAll(request, first, payloads, uploader)
  const deliver = () => deliverAll(plans, attempted, now, request, uploader)
  const result = await uploader.slots.of(destination.id).run(deliver, signal)
  return 'is' in result ? answerKnown(result, request, uploader) : result
}

/** The outcome of an earlier request. @returns undefined if it is not known yet */
async function answerKnown(
  { upload, fingerprint }: Known,
  request: UploadRequest,
  uploader: Uploader,
): Promise<Uploaded | undefined> {
  if (fingerprint !== request.idempotency?.fingerprint)
    throw new UploadError(
      'idempotency_key_reused',
      'This Idempotency-Key belongs to another request. Send a new Idempotency-Key with a new request.',
    )
  if (upload.state === 'uploading') return undefined
  const ended =
    upload.state === 'stored' ? await uploader.finalizer.runHooks(upload.id, request.baseUrl) : upload
  if (!ended || ended === 'elsewhere') return undefined
  // The code is one of this program.
  const failed = ended.failed.map(({ index, code, message }) =>
    failure(index, request, new UploadError(code as ErrorCode, message)),
  )
  return { outcomes: outcomesOf(ended, failed, request, uploader), isRepeated: true }
}

/** Fetches the inputs and plans their objects. This uses no upload slot, because a slow source would block other uploads. */
async function planAll(
  request: UploadRequest,
  attempt: Attempt,
  payloads: Payload[],
  uploader: Uploader,
): Promise<Plans> {
  const { inputs, destination, signal } = request
  const files: Planned[] = []
  const failed: Failure[] = []
  const planOne = async (input: Input, index: number) => {
    try {
      const payload = await obtain(input, request, uploader)
      payloads.push(payload)
      const planned = await plan(payload, index, request, attempt, uploader)
      payloads.push(planned.payload)
      files.push(planned)
    } catch (error) {
      signal.throwIfAborted()
      failed.push(failure(index, request, error))
    }
  }
  const planEach = () => mapConcurrently(inputs, SIDE_BY_SIDE, planOne)
  const isFetched = inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard')
  await (isFetched ? uploader.fetches.of(destination.id).run(planEach, signal) : planEach())
  return { files: files.length > 1 ? shareEqual(files.sort(byIndex)) : files, failed }
}

/** Files with the same content and object keys are sent once: the later ones need no objects. */
function shareEqual(files: readonly Planned[]): Planned[] {
  const first = new Map<string, Planned>()
  return files.map(one => {
    const id = JSON.stringify(one.wanted.map(({ key, sha256 }) => [key, sha256]))
    const twin = first.get(id)
    if (twin) return { ...one, wanted: [], twin }
    first.set(id, one)
    return one
  })
}

/**
 * Begins an upload, delivers its files, ends it and runs the hooks.
 *
 * @param now when it begins
 * @returns the upload that has the idempotency key, if it is another one
 */
async function deliverAll(
  { files, failed: unplanned }: Plans,
  key: Attempted | undefined,
  now: number,
  request: UploadRequest,
  uploader: Uploader,
): Promise<Uploaded | Known> {
  const { database, owner, finalizer, hooks } = uploader
  const { caller, inputs, signal, baseUrl } = request
  const { quotas = [] } = caller
  const started = newUpload(request, inputs, owner.id, now)
  const claimant: Claimant = { id: started.id, claimed: new Set() }
  await owner.keepAlive()
  const begun = await begin(database, started, claimant, files, { request: key, quotas }).catch(error => {
    finalizer.drop(started)
    throw error
  })
  if (begun.is === 'known') return begun

  const delivery: Delivery = {
    ...{ deps: uploader, upload: started, claimant, quotas, signal },
    ...{ open: new Set(), others: [], waiting: [] },
  }
  const stored: StoredFile[] = []
  const failed = [...unplanned]
  const delivering = new Map<Planned, Promise<StoredFile>>()
  await mapConcurrently(files, SIDE_BY_SIDE, async one => {
    const { index, twin } = one
    try {
      const full = begun.full.get(index)
      if (full) throw quotaExceeded(full)
      const sending = (twin && delivering.get(twin)) ?? deliver(one, begun.claims, delivery)
      delivering.set(one, sending)
      stored.push({ ...(await sending), index, origin: started.origins[index] ?? '' })
    } catch (error) {
      failed.push(failure(index, request, error))
    }
  })
  const state = failed.length > 0 ? 'failed' : hooks.length > 0 ? 'stored' : 'done'
  const saving = finalizer.save(
    started,
    {
      state,
      files: stored.sort(byIndex),
      others: delivery.others,
      failed: failed.map(({ index, error }) => ({
        index,
        code: error.code,
        message: uploader.mask(error.message),
      })),
      ...{ claimed: claimant.claimed, open: delivery.open },
    },
    key?.key,
  )
  const saved = await saving.finally(() => endDelivery(delivery))
  for (const index of saved.lost) failed.push(failure(index, request, lost()))
  const outcomes = outcomesOf(saved, failed, request, uploader)
  for (const outcome of outcomes) {
    const isCancelled = signal.aborted && !outcome.ok && outcome.error.cause === signal.reason
    if (!isCancelled) request.onOutcome?.(outcome)
  }
  if (saved.files.length === 0) signal.throwIfAborted()
  if (state === 'stored' && saved.lost.length === 0) await finalizer.runHooks(started.id, baseUrl, hooks)
  return { outcomes, isRepeated: false }
}

const byIndex = (one: { readonly index: number }, other: { readonly index: number }) =>
  one.index - other.index

const failure = (index: number, { inputs }: UploadRequest, error: unknown): Failure => ({
  ...{ ok: false, index, origin: inputs[index]?.origin ?? '' },
  error: asUploadError(error, INTERNAL),
})

function lost(): UploadError {
  return new UploadError(
    'destination_failed',
    'Another upload has stored other content under the same object key, because this server did not run for a while. Try again.',
    { retryAfterS: 1 },
  )
}

/** The outcomes of an upload in the order of its inputs, with their origins as the client sent them, and its links. */
function outcomesOf(
  { files }: Pick<Upload, 'files'>,
  failed: readonly Failure[],
  { inputs, baseUrl }: UploadRequest,
  { destinations }: Uploader,
): Outcome[] {
  const outcomes: Outcome[] = [...failed]
  for (const file of files) {
    const linked = withLinks(file, baseUrl, destinations)
    outcomes.push({ ok: true, ...linked, origin: inputs[file.index]?.origin ?? '' })
  }
  return outcomes.sort(byIndex)
}
