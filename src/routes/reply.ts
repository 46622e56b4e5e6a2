import type { Response } from 'express'
import type { LoggedFile } from '../log-lines.ts'
import type { Mask } from '../mask.ts'
import { findImageFault } from '../payload/extensions.ts'
import type { Copy, StoredFile, Upload } from '../store/contract.ts'
import type { FinalizationPending } from '../uploader/finalize.ts'
import { keptOrigin, type Outcome } from '../uploader/input.ts'
import type { UploadRequest } from '../uploader/request.ts'
import type { Uploaded } from '../uploader/upload.ts'
import type { Pending, Uploaded as UploadedBody, UploadFailure } from './contract.ts'
import { publicMessage, withoutAddresses } from './error-handler.ts'
import { sendBody } from './reply-format.ts'
import { addToLog } from './request-log.ts'
import { statusOf } from './status.ts'

type Stored = Extract<Outcome, { ok: true }>
type Failed = Extract<Outcome, { ok: false }>

/** A response to POST /upload before it is sent. */
export interface UploadReply {
  readonly status: number
  readonly body: {
    readonly result?: readonly string[]
    readonly finalizationId?: string
    readonly items?: readonly { readonly index: number }[]
    readonly errors?: readonly { readonly index: number }[]
    readonly [member: string]: unknown
  }
  /** Seconds for `Retry-After`. */
  readonly retryAfterS?: number | undefined
}

/** Status of pending uploads. No client or proxy retries a 424 automatically, which would upload twice. */
const FINALIZATION_STATUS = 424

/**
 * The response for the outcomes of an upload, which are added to the log line of its request. `success` is true only if every
 * input was stored.
 */
export function replyForOutcomes(
  { outcomes, isRepeated }: Uploaded,
  { destination: { id }, requestId }: UploadRequest,
  res: Response,
  mask: Mask,
): UploadReply {
  const stored: Stored[] = []
  const failed: Failed[] = []
  for (const one of outcomes) {
    if (one.ok) stored.push(one)
    else failed.push(one)
  }
  if (isRepeated) addToLog(res, { repeated: true })
  else logOutcomes(res, stored, failed, mask)
  return failed.length === 0
    ? replyForFiles({ files: stored, destination: id })
    : replyForFailures(stored, failed, id, requestId, mask)
}

function replyForFailures(
  stored: readonly StoredFile[],
  failed: readonly Failed[],
  destination: string,
  requestId: string,
  mask: Mask,
): UploadReply {
  const errors = failed.map(outcome => toError(outcome, mask))
  const message = summarise(errors, stored.length + failed.length)
  const { code, retryAfterS } = (failed[0] as Failed).error
  return {
    status: statusOf(code),
    body: {
      success: false,
      message,
      msg: message,
      code,
      requestId,
      // Some clients only read `result`. They misread an empty list, but notice a missing one.
      ...(stored.length > 0 && {
        result: stored.map(file => file.url),
        items: stored.map(file => toItem(file, destination)),
      }),
      errors,
    } satisfies UploadFailure,
    retryAfterS,
  }
}

/** The response if every file was stored. */
export function replyForFiles({ files, destination }: Pick<Upload, 'files' | 'destination'>): UploadReply {
  const items = files.map(file => toItem(file, destination))
  const result = items.map(({ imgUrl }) => imgUrl)
  return { status: 200, body: { success: true, result, items } satisfies UploadedBody }
}

/** The response if every file was stored but a post-upload step failed. It has exactly these members. */
export function replyForPending(pending: FinalizationPending, mask: Mask): UploadReply {
  const { finalizationId } = pending
  const message = publicMessage(pending, mask)
  return {
    status: FINALIZATION_STATUS,
    body: { success: false, stage: 'finalization', finalizationId, message } satisfies Pending,
  }
}

/** Sends a response. With `compat.alwaysOk` or `?status=200`, its status is 200. */
export function send(res: Response, { status, body, retryAfterS }: UploadReply): void {
  res.status(res.locals.alwaysOk === true ? 200 : status)
  if (retryAfterS !== undefined) res.set('Retry-After', String(Math.ceil(retryAfterS)))
  sendBody(res, body)
}

/** Adds the outcomes of an upload to the request's log line. */
function logOutcomes(res: Response, stored: readonly Stored[], failed: readonly Failed[], mask: Mask): void {
  const files: LoggedFile[] = []
  const keys: string[] = []
  let bytes = 0
  for (const { index, origin, size, url, key } of stored) {
    files[index] = { name: keptOrigin(origin), size, url }
    keys.push(key)
    bytes += size
  }
  const errors: string[] = []
  for (const { index, origin, error } of failed) {
    const message = publicMessage(error, mask)
    files[index] = { name: keptOrigin(origin), error: message }
    errors.push(message)
  }
  addToLog(res, { stored: stored.length, bytes, keys, files })
  const [first] = failed
  if (!first) return
  addToLog(res, { code: first.error.code, failed: failed.map(({ origin }) => keptOrigin(origin)), errors })
  res.err = (failed.find(({ error }) => error.cause !== undefined) ?? first).error
}

/** Names the files of an upload that was aborted in the request's log line. */
export function logFailed(res: Response, origins: readonly string[], reason: Error): void {
  const names = origins.map(keptOrigin)
  addToLog(res, { failed: names, files: names.map((name): LoggedFile => ({ name, error: reason.message })) })
}

/** @param asked the requested destination, `provider/configName`; the file may be at its fallback */
function toItem(file: StoredFile, asked: string) {
  const { index, origin, url, key, size, contentType, sha256, expiresAt, destination, mirrors } = file
  const fileName = key.slice(key.lastIndexOf('/') + 1)
  const [provider = ''] = destination.split('/')
  return {
    index,
    origin,
    imgUrl: url,
    fileName,
    size,
    provider,
    type: provider, // PicGo's name
    contentType,
    sha256,
    expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt).toISOString(),
    ...(destination !== asked && { destination }),
    mirrors: mirrors?.map(toMirror),
    warning: findImageFault(fileName, file),
  }
}

function toMirror({ destination, url, error }: Copy) {
  return url === undefined
    ? { destination, error: withoutAddresses(error ?? '') }
    : { destination, imgUrl: url }
}

function toError({ index, origin, error }: Failed, mask: Mask) {
  return { index, origin, code: error.code, message: publicMessage(error, mask) }
}

/** Summary for people: all messages, or the first three if there are more. */
function summarise(errors: readonly { message: string }[], total: number): string {
  const messages = [...new Set(errors.map(error => error.message))]
  if (total === 1) return messages.join(' ')
  const shown = messages.slice(0, 3).join(' ')
  const more = messages.length > 3 ? ` And ${messages.length - 3} more, see "errors".` : ''
  return `${errors.length} of ${total} files failed. ${shown}${more}`
}
