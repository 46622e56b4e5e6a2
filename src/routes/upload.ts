import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import type { Mask } from '../mask.ts'
import { idOf } from '../uploader/destinations.ts'
import { FinalizationPending } from '../uploader/finalization-pending.ts'
import { fingerprintOf } from '../uploader/fingerprint.ts'
import type { Uploader, UploadRequest } from '../uploader/index.ts'
import type { Caller } from '../uploader/input.ts'
import { type Access, admitSameSite } from './access.ts'
import { baseUrlOf } from './base-url.ts'
import type { Received } from './body.ts'
import { checkOptions, fingerprintedOptions, readOptions, withFields } from './options.ts'
import { announceQuotas } from './rate-limit.ts'
import { headerName, receive } from './receive.ts'
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
    const header = req.get('idempotency-key')
    const key = header === undefined ? undefined : readIdempotencyKey(header)
    // A repeated request gets its response, whatever is left.
    if (key === undefined && caller.quotas) await uploader.assertRoom(caller.quotas)
    uploader.slots.of(idOf(destination)).assertRoom()

    /** Files that fail if the client disconnects. */
    let underWay: string[] = []
    const signal = abortWhenGone(res, () => underWay)
    let body: Received = { inputs: [] }
    try {
      body = await receive(req, res, {
        name: asked.filename ?? req.params['name']?.toString() ?? headerName(req.get('x-file-name')),
        payloads: uploader.payloads,
        spool: uploader.spoolFor(destination),
        limits: {
          ...settings.limits,
          fileSize: Math.min(settings.limits.fileSize, caller.fileSize ?? Infinity),
        },
        onFile: name => underWay.push(name),
        isReadable: path => uploader.isReadable(path, caller),
      })
      const { inputs, fields = [] } = body
      const options = withFields(asked, fields, destination)
      addToLog(res, { inputs: inputs.length, source: inputs[0]?.kind })
      // Files whose bytes are not known can't be compared with those of another request.
      const fingerprint = key && fingerprintOf(idOf(destination), fingerprintedOptions(options), inputs)
      underWay = fingerprint ? [] : inputs.map(({ origin }) => origin)
      const request: UploadRequest = {
        destination,
        inputs,
        options,
        caller,
        requestId: req.id,
        baseUrl,
        // The client will repeat a request with a key to get its response, so the upload continues without it.
        signal: fingerprint ? createCanceller().signal : signal,
        ...(key && fingerprint && { idempotency: { key: clientKey(caller, key), fingerprint } }),
      }
      const answer = await upload(uploader, request, res, mask)
      await announceQuotas(res, caller, uploader)
      send(res, answer)
    } finally {
      body.release?.()
      await uploader.discard(body.inputs)
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

/** Completes an upload whose post-upload steps failed. Does not upload the files again. */
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
export function abortWhenGone(res: Response, underWay: () => readonly string[] = () => []): AbortSignal {
  const gone = createCanceller()
  const onDisconnect = () => {
    if (res.writableFinished) return
    const reason =
      res.err ?? new UploadError('invalid_request', 'The client disconnected before the upload was complete.')
    const names = underWay()
    if (names.length > 0) logFailed(res, names, reason)
    gone.abort(reason)
  }
  if (res.closed) onDisconnect()
  // The log line is written at the same event.
  else res.prependOnceListener('close', onDisconnect)
  return gone.signal
}
