import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { once } from '../flow/once.ts'
import type { Mask } from '../mask.ts'
import { type Destination, idOf } from '../uploader/destinations.ts'
import { FinalizationPending } from '../uploader/finalization-pending.ts'
import { fingerprintOf } from '../uploader/fingerprint.ts'
import type { Uploader, UploadRequest } from '../uploader/index.ts'
import type { Caller, Input } from '../uploader/input.ts'
import { type Access, admitSameSite } from './access.ts'
import { baseUrlOf } from './base-url.ts'
import { sendContinue } from './body.ts'
import type { FormBody } from './form.ts'
import { readBoundary } from './multipart.ts'
import { checkOptions, fingerprintedOptions, readOptions, withFields } from './options.ts'
import { announceQuotas } from './rate-limit.ts'
import { headerName, receiveBody } from './raw.ts'
import {
  logFailed,
  logOutcomes,
  replyForFiles,
  replyForOutcomes,
  replyForPending,
  send,
  type UploadReply,
} from './reply.ts'
import { addToLog } from './request-log.ts'

export interface UploadRouteSettings {
  readonly publicUrl?: string | undefined
  /** URL the server listens on. Known when the first request arrives. */
  listenUrl(): string
  readonly alwaysOk: boolean
  readonly limits: {
    readonly fileSize: number
    readonly files: number
    readonly jsonBody: number
    readonly bodyIdleMs: number
  }
}

/** POST and PUT /upload: client, destination, inputs, upload, response. The body is not read unless the client may upload. */
export function createUploadRoute(
  uploader: Uploader,
  access: Access,
  settings: UploadRouteSettings,
  mask: Mask,
): (req: Request, res: Response, query: URLSearchParams) => Promise<void> {
  return async (req, res, query) => {
    const caller = await admitSameSite(req, res, query, access)
    await announceQuotas(res, caller, uploader)
    const asked = readOptions(query)
    if (asked.finalizationId) {
      const base = baseUrlOf(req, settings.publicUrl, settings.listenUrl())
      send(res, await finish(uploader, asked.finalizationId, base, abortWhenGone(res), mask))
      return
    }
    const destination = uploader.choose(asked, caller)
    addToLog(res, { destination: idOf(destination) })
    const baseUrl = baseUrlOf(req, settings.publicUrl, settings.listenUrl())
    checkOptions(asked, destination)
    const key = readIdempotencyKey(req.get('idempotency-key'))
    // A repeated request gets its response, whatever is left.
    if (key === undefined) await uploader.assertRoom(caller.quotas ?? [])
    uploader.slots.of(idOf(destination)).assertRoom()

    const name = asked.filename ?? req.params['name']?.toString() ?? headerName(req.get('x-file-name'))
    let inputs: readonly Input[] = []
    let release: (() => void) | undefined
    try {
      const isReadable = (path: string) => uploader.isReadable(path, caller)
      const body = await readInputs(
        req,
        res,
        name,
        uploader,
        destination,
        { ...settings.limits, fileSize: Math.min(settings.limits.fileSize, caller.fileSize ?? Infinity) },
        isReadable,
      )
      inputs = body.inputs
      release = body.release
      const options = withFields(asked, body.fields, destination)
      addToLog(res, { inputs: inputs.length, source: inputs[0]?.kind })
      const fingerprint = key && fingerprintOf(idOf(destination), fingerprintedOptions(options), inputs)
      const request: UploadRequest = {
        destination,
        inputs,
        options,
        caller,
        requestId: req.id,
        baseUrl,
        // The client will repeat a request with a key to get its response, so the upload continues without it.
        signal: fingerprint ? createCanceller().signal : abortWhenGone(res, inputs),
        // Files whose bytes are not known can't be compared with those of another request.
        ...(key && fingerprint && { idempotency: { key: clientKey(caller, key), fingerprint } }),
      }
      const answer = await upload(uploader, request, res, mask)
      await announceQuotas(res, caller, uploader)
      send(res, answer)
    } finally {
      release?.()
      await uploader.discard(inputs)
    }
  }
}

async function upload(
  uploader: Uploader,
  request: UploadRequest,
  res: Response,
  mask: Mask,
): Promise<UploadReply> {
  try {
    const { outcomes, isRepeated } = await uploader.upload(request)
    if (isRepeated) addToLog(res, { repeated: true })
    else logOutcomes(res, outcomes, mask)
    return replyForOutcomes(outcomes, idOf(request.destination), request.requestId, mask)
  } catch (error) {
    if (!(error instanceof FinalizationPending)) throw error
    addToLog(res, { finalizationId: error.finalizationId, problem: error.message })
    return replyForPending(error, mask)
  }
}

/** Completes an upload whose post-upload steps failed. Uploads nothing again. */
async function finish(
  uploader: Uploader,
  id: string,
  baseUrl: string,
  signal: AbortSignal,
  mask: Mask,
): Promise<UploadReply> {
  try {
    const ended = await uploader.finalize(id, baseUrl, signal)
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
function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\]){1,255})" *(?:;.*)?$/.exec(header)?.[1]
  if (quoted !== undefined) return quoted.replace(/\\(.)/g, '$1')
  if (/^[!#-~][!-~]{0,254}$/.test(header)) return header
  throw new UploadError(
    'invalid_request',
    'The Idempotency-Key must have 1 to 255 visible ASCII characters. Put it in double quotes if it contains spaces or quotes.',
  )
}

/** Of some size, and not needed to start. */
const loadForm = once(() => import('./form.ts'))

/** Reads the body as a form or as a file if the request says so, or else as JSON, whatever its Content-Type. */
async function readInputs(
  req: Request,
  res: Response,
  name: string | undefined,
  uploader: Uploader,
  destination: Destination,
  limits: UploadRouteSettings['limits'],
  isReadable: (path: string) => Promise<boolean>,
): Promise<FormBody> {
  const encoding = req.headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new UploadError(
      'invalid_request',
      `The Content-Encoding "${encoding}" is not supported. Send the body uncompressed.`,
    )
  }
  const boundary = readBoundary(req.headers['content-type'])
  const { payloads } = uploader
  const spool = uploader.spoolFor(destination)
  if (boundary === undefined) return receiveBody(req, res, { name, payloads, spool, limits, isReadable })
  const { readForm, assertFits } = await loadForm()
  assertFits(req, limits)
  sendContinue(req, res)
  return readForm(req, res, {
    boundary,
    payloads,
    spool,
    fileSize: limits.fileSize,
    files: limits.files,
    bodyIdleMs: limits.bodyIdleMs,
  })
}

/**
 * Aborts if the client disconnects before it has the response, or if the server shuts down.
 *
 * @param inputs fail then, and are named in the log line
 */
function abortWhenGone(res: Response, inputs: readonly Input[] = []): AbortSignal {
  const gone = createCanceller()
  const onDisconnect = () => {
    if (res.writableFinished) return
    const reason =
      res.err ?? new UploadError('invalid_request', 'The client disconnected before the upload was complete.')
    const names = inputs.map(({ origin }) => origin)
    if (names.length > 0) logFailed(res, names, reason)
    gone.abort(reason)
  }
  if (res.closed) onDisconnect()
  // The log line is written at the same event.
  else res.prependOnceListener('close', onDisconnect)
  return gone.signal
}
