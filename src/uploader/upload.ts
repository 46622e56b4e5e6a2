import { randomUUID } from 'node:crypto'
import { asUploadError, type ErrorCode, UploadError } from '../errors.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { poll } from '../flow/poll.ts'
import type { Payload } from '../payload/index.ts'
import type { Claimant } from '../store/claims.ts'
import type { FailedFile, StoredFile } from '../store/contract.ts'
import { objectName, settleOpen } from '../store/objects.ts'
import { earlierRequest, type RequestKey } from '../store/requests.ts'
import { newUploadId } from '../store/upload-id.ts'
import type { NewUpload } from '../store/upload-rows.ts'
import { type Begun, begin } from '../store/uploads.ts'
import type { UploaderDeps } from './app.ts'
import { deliver } from './deliver.ts'
import { idOf } from './destinations.ts'
import { type Input, keptOrigin, type Outcome } from './input.ts'
import { withLinks } from './links.ts'
import { type Attempt, type Planned, plan } from './plan.ts'
import { quotaExceeded } from './quota.ts'
import { discard, spoolFor, type UploadRequest } from './request.ts'
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

/**
 * Uploads the inputs of a request. Their payloads are disposed of.
 *
 * @throws FinalizationPending if everything is stored and a post-upload step fails
 * @throws UploadError if the upload can't be saved; then nothing is uploaded
 * @throws the reason of the signal, if nothing was sent
 */
export async function upload(request: UploadRequest, deps: UploaderDeps): Promise<Uploaded> {
  const { idempotency: key, signal, abortsSending } = request
  const payloads: Payload[] = []
  const within = abortsSending ? { ...deps, ending: signal } : deps
  try {
    return await poll(() => attempt(request, key, payloads, within), signal)
  } finally {
    for (const payload of payloads) await payload.dispose()
    await discard(request.inputs)
  }
}

/** @returns undefined if another request with the same idempotency key is being handled. Ask again */
async function attempt(
  request: UploadRequest,
  key: Omit<RequestKey, 'seed'> | undefined,
  kept: Payload[],
  deps: UploaderDeps,
): Promise<Uploaded | undefined> {
  const now = Date.now()
  if (key) await deps.finalizer.saveFor(key.key)
  const earlier = key && (await deps.database.read(db => earlierRequest(db, key, now)))
  if (earlier?.known) return answerKnown(earlier.known, key, request, deps)
  const first: Attempt = earlier ?? { time: now, seed: key && randomUUID() }
  const { files, failed } = await planAll(request, first, kept, deps)
  const requestKey = key && { ...key, seed: first.seed ?? '' }
  const result = await deps.slots
    .of(idOf(request.destination))
    .run(() => deliverAll(files, failed, requestKey, request, now, deps), request.signal)
  return 'is' in result ? answerKnown(result, key, request, deps) : result
}

/** The outcome of an earlier request. */
async function answerKnown(
  { upload, fingerprint }: Extract<Begun, { is: 'known' }>,
  key: Omit<RequestKey, 'seed'> | undefined,
  request: UploadRequest,
  deps: UploaderDeps,
): Promise<Uploaded | undefined> {
  if (fingerprint !== key?.fingerprint)
    throw new UploadError(
      'idempotency_key_reused',
      'This Idempotency-Key belongs to another request. Send a new Idempotency-Key with a new request.',
    )
  if (upload.state === 'uploading') return undefined
  const ended = upload.state === 'stored' ? await deps.finalizer.runHooks(upload.id, request.baseUrl) : upload
  if (!ended || ended === 'elsewhere') return undefined
  const { files, failed } = ended
  return { outcomes: outcomesOf({ files, failures: failed.map(toFailure) }, request, deps), isRepeated: true }
}

/** Fetches the inputs and plans their objects. This uses no upload slot, because a slow source would block other uploads. */
async function planAll(
  request: UploadRequest,
  first: Attempt,
  kept: Payload[],
  deps: UploaderDeps,
): Promise<{ readonly files: readonly Planned[]; readonly failed: readonly Failure[] }> {
  const { inputs, destination, caller, signal } = request
  const [files, failed]: [Planned[], Failure[]] = [[], []]
  const planOne = async (input: Input, index: number) => {
    try {
      const { payloads, sources } = deps
      const spool = spoolFor(destination, deps)
      const payload = await obtain(input, caller, payloads, spool, sources, signal)
      kept.push(payload)
      const planned = await plan(payload, index, request, first, deps)
      kept.push(planned.payload)
      files.push(planned)
    } catch (error) {
      signal.throwIfAborted()
      failed.push(failure(index, input.origin, error))
    }
  }
  const planEach = () => mapConcurrently(inputs, SIDE_BY_SIDE, planOne)
  const isFetched = inputs.some(({ kind }) => kind === 'url' || kind === 'clipboard')
  await (isFetched ? deps.fetches.of(idOf(destination)).run(planEach, signal) : planEach())
  return { files: files.sort((a, b) => a.index - b.index), failed }
}

type Failure = Extract<Outcome, { ok: false }>

async function deliverAll(
  files: readonly Planned[],
  failedBefore: readonly Failure[],
  key: RequestKey | undefined,
  request: UploadRequest,
  now: number,
  deps: UploaderDeps,
): Promise<Uploaded | Extract<Begun, { is: 'known' }>> {
  const { database, owner, finalizer, hooks } = deps
  const { destination, caller, inputs, signal, baseUrl } = request
  const { quotas = [] } = caller
  await owner.keepAlive()
  const started = newUpload(request, owner.id, now)
  const claimant: Claimant = { id: started.id, claimed: new Set() }
  const begun = await begin(database, started, claimant, files, { request: key, quotas }).catch(error => {
    finalizer.drop(started)
    throw error
  })
  if (begun.is === 'known') return begun

  const { delivery, end } = openDelivery(started, claimant, request, deps)
  const failed = [...failedBefore]
  const stored: StoredFile[] = []
  await mapConcurrently(files, SIDE_BY_SIDE, async (file, n) => {
    const allowed = begun.files[n]
    try {
      if (!allowed) throw new Error('there is no claim for the file')
      if ('full' in allowed) throw quotaExceeded(allowed.full)
      const { destination: at, ...kept } = await deliver(file, allowed.claims, destination, delivery, deps)
      stored.push(at === started.destination ? kept : { ...kept, destination: at })
    } catch (error) {
      failed.push(failure(file.index, file.origin, error))
    }
  })
  const state = failed.length > 0 ? 'failed' : hooks.length > 0 ? 'stored' : 'done'
  const names = namesOf([...stored, ...delivery.others])
  const saving = finalizer.save(
    started,
    {
      state,
      files: stored.sort((one, other) => one.index - other.index),
      others: delivery.others,
      failed: failed.map(({ index, error }) => ({
        index,
        code: error.code,
        message: deps.mask(error.message),
      })),
      left: [...delivery.open].filter(name => !names.has(name)),
      isSettled: [...claimant.claimed].every(name => names.has(name)),
    },
    key?.key,
  )
  const saved = await saving.finally(end)
  for (const index of saved.lost) failed.push(failure(index, inputs[index]?.origin ?? '', lost()))
  const outcomes = outcomesOf({ files: saved.files, failures: failed }, request, deps)
  const isCancelled = (outcome: Outcome) =>
    signal.aborted && !outcome.ok && outcome.error.cause === signal.reason
  for (const outcome of outcomes) if (!isCancelled(outcome)) request.onOutcome?.(outcome)
  if (saved.files.length === 0) signal.throwIfAborted()
  if (state === 'stored' && saved.lost.length === 0) await finalizer.runHooks(started.id, baseUrl, hooks)
  return { outcomes, isRepeated: false }
}

function newUpload(
  { caller, destination, inputs, requestId }: UploadRequest,
  owner: string,
  now: number,
): NewUpload {
  return {
    id: newUploadId(now),
    createdAt: now,
    owner,
    requestId,
    caller: caller.name,
    destination: idOf(destination),
    origins: inputs.map(({ origin }) => keptOrigin(origin)),
  }
}

/** @returns `end` passes what is left of the delivery to this process, and starts the work for later */
function openDelivery(
  upload: NewUpload,
  claimant: Claimant,
  { caller: { quotas = [] }, signal }: UploadRequest,
  { background, database, owner }: UploaderDeps,
): { readonly delivery: Delivery; end(): void } {
  const open = new Set<string>()
  const waiting: (() => Promise<unknown>)[] = []
  let hasEnded = false
  const later = (work: () => Promise<unknown>) => {
    if (hasEnded) background.run(work())
    else waiting.push(work)
  }
  return {
    delivery: {
      ...{ upload, claimant, quotas, signal, open, later },
      others: [],
      sent: new Map(),
      release(name) {
        open.delete(name)
        if (hasEnded) later(() => database.tx(db => settleOpen(db, owner.id, name, 'nothing', false)))
      },
    },
    end() {
      hasEnded = true
      claimant.id = owner.id
      for (const work of waiting.splice(0)) background.run(work())
    },
  }
}

function namesOf(files: readonly StoredFile[]): ReadonlySet<string> {
  const at = files.flatMap(file => [file, ...(file.mirrors ?? [])])
  return new Set(at.flatMap(({ location, key }) => (location && key ? [objectName(location, key)] : [])))
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

/** The outcomes of an upload in the order of its inputs, with their origins as the client sent them, and its links. */
function outcomesOf(
  {
    files,
    failures,
  }: { readonly files: readonly StoredFile[]; readonly failures: readonly Omit<Failure, 'origin'>[] },
  { inputs, destination, baseUrl }: UploadRequest,
  { destinations }: UploaderDeps,
): Outcome[] {
  const originOf = (index: number) => inputs[index]?.origin ?? ''
  const stored = files.map(
    (file): Outcome => ({
      ok: true,
      ...withLinks(file, idOf(destination), baseUrl, destinations),
      origin: originOf(file.index),
    }),
  )
  const failed = failures.map((one): Outcome => ({ ...one, origin: originOf(one.index) }))
  return [...stored, ...failed].sort((one, other) => one.index - other.index)
}

/** A saved failure. */
const toFailure = ({ index, code, message }: FailedFile): Omit<Failure, 'origin'> => ({
  ...{ ok: false, index },
  // The code is one of this program.
  error: new UploadError(code as ErrorCode, message),
})
