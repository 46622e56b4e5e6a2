import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import type { Mask } from '../mask.ts'
import type { Uploader } from '../uploader/app.ts'
import { chooseDestination } from '../uploader/destinations.ts'
import { FinalizationPending } from '../uploader/finalize.ts'
import type { Caller } from '../uploader/input.ts'
import { assertRoom } from '../uploader/quota.ts'
import { discard, fingerprintOf, type UploadRequest } from '../uploader/request.ts'
import { upload } from '../uploader/upload.ts'
import { type Access, admitSameSite } from './access.ts'
import type { BaseUrl } from './base-url.ts'
import type { Received } from './body.ts'
import type { Metrics } from './metrics.ts'
import { checkOptions, fingerprintedOptions, readOptions, withFields } from './options.ts'
import { announceQuotas } from './rate-limit.ts'
import { receive } from './receive.ts'
import {
  logFailed,
  replyForFiles,
  replyForOutcomes,
  replyForPending,
  send,
  type UploadReply,
} from './reply.ts'
import { addToLog } from './request-log.ts'

export interface UploadRouteSettings {
  readonly alwaysOk: boolean
  readonly limits: {
    readonly fileSize: number
    readonly files: number
    readonly jsonBody: number
    readonly bodyIdleMs: number
  }
}

/** Handles a request to upload. */
export type UploadAnswer = (req: Request, res: Response, query: URLSearchParams) => Promise<void>

/** POST and PUT /upload: client, destination, inputs, upload, response. The body is not read unless the client may upload. */
export function createUploadRoute(
  uploader: Uploader,
  access: Access,
  settings: UploadRouteSettings,
  baseOf: BaseUrl,
  mask: Mask,
  metrics: Metrics | undefined,
): UploadAnswer {
  const { database, payloads, slots } = uploader
  const uploadMeasured = metrics?.measure ?? upload

  async function answer(request: UploadRequest, res: Response): Promise<UploadReply> {
    try {
      const uploaded = await uploadMeasured(request, uploader)
      return replyForOutcomes(uploaded, request, res, mask)
    } catch (error) {
      if (!(error instanceof FinalizationPending)) throw error
      addToLog(res, { finalizationId: error.finalizationId, problem: error.message })
      return replyForPending(error, mask)
    }
  }

  return async (req, res, query) => {
    const caller = await admitSameSite(req, res, query, access)
    const { quotas } = caller
    if (quotas) await announceQuotas(res, quotas, uploader)
    const asked = readOptions(query)
    const baseUrl = baseOf(req)
    if (asked.finalizationId) {
      send(res, await finish(uploader, asked.finalizationId, baseUrl, abortWhenGone(res, []), mask))
      return
    }
    const destination = chooseDestination(uploader, asked, caller.destinations)
    addToLog(res, { destination: destination.id })
    checkOptions(asked, destination)
    const header = req.get('idempotency-key')
    const key = header === undefined ? undefined : readIdempotencyKey(header)
    // A repeated request gets its response, whatever is left.
    if (key === undefined && quotas)
      await assertRoom(database, quotas).catch(error => {
        metrics?.countQuota(error, quotas)
        throw error
      })
    slots.of(destination.id).assertRoom()

    /** Files that fail if the client disconnects. */
    const underWay: string[] = []
    const signal = abortWhenGone(res, underWay)
    let body: Received = { inputs: [] }
    try {
      const fileSize = Math.min(settings.limits.fileSize, caller.fileSize ?? Infinity)
      body = await receive(req, res, {
        ...{ payloads, spool: destination.spool ?? uploader.spool, underWay },
        name: asked.filename ?? req.params['name']?.toString(),
        limits: { ...settings.limits, fileSize },
      })
      const { inputs, fields = [] } = body
      const options = withFields(asked, fields, destination)
      addToLog(res, { inputs: inputs.length, source: inputs[0]?.kind })
      // Files whose bytes are not known can't be compared with those of another request.
      const fingerprint = key && fingerprintOf(destination.id, fingerprintedOptions(options), inputs)
      underWay.length = 0
      if (!fingerprint) for (const { origin } of inputs) underWay.push(origin)
      const request: UploadRequest = {
        ...{ destination, inputs, options, caller, requestId: req.id, baseUrl },
        // The client will repeat a request with a key to get its response, so the upload continues without it.
        signal: fingerprint ? createCanceller().signal : signal,
        ...(key && fingerprint && { idempotency: { key: clientKey(caller, key), fingerprint } }),
      }
      const reply = await answer(request, res)
      if (quotas) await announceQuotas(res, quotas, uploader)
      send(res, reply)
    } finally {
      body.release?.()
      await discard(body.inputs)
    }
  }
}

/** Completes an upload whose post-upload steps failed. Does not upload the files again. */
async function finish(
  { finalizer }: Uploader,
  id: string,
  baseUrl: string,
  signal: AbortSignal,
  mask: Mask,
): Promise<UploadReply> {
  try {
    const ended = await finalizer.retry(id, baseUrl, signal)
    if (ended) return replyForFiles(ended)
  } catch (error) {
    if (error instanceof FinalizationPending) return replyForPending(error, mask)
    throw error
  }
  throw new UploadError('unknown_finalization', 'No pending upload has this finalizationId.')
}

/** Clients may choose the same key. */
const clientKey = ({ admittedBy, name }: Caller, key: string) => JSON.stringify([admittedBy, name, key])

/** A string of RFC 9651, whose parameters are ignored, or the bare text that many clients send. */
function readIdempotencyKey(header: string): string {
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\]){1,255})" *(?:;.*)?$/.exec(header)?.[1]
  if (quoted !== undefined) return quoted.replace(/\\(.)/g, '$1')
  if (/^[!#-~][!-~]{0,254}$/.test(header)) return header
  throw new UploadError(
    'invalid_request',
    'The Idempotency-Key must have 1 to 255 visible ASCII characters. Put it in double quotes if it contains spaces or quotes.',
  )
}

/**
 * Aborts if the client disconnects before it has the response, or if the server shuts down.
 *
 * @param underWay files that fail then, and are named in the log line
 */
export function abortWhenGone(res: Response, underWay: readonly string[]): AbortSignal {
  const gone = createCanceller()
  const onDisconnect = () => {
    if (res.writableFinished) return
    const reason =
      res.err ?? new UploadError('invalid_request', 'The client disconnected before the upload was complete.')
    if (underWay.length > 0) logFailed(res, underWay, reason)
    gone.abort(reason)
  }
  if (res.closed) onDisconnect()
  // The log line is written at the same event.
  else res.prependOnceListener('close', onDisconnect)
  return gone.signal
}
