import * as z from '../packages/zod.ts'
import { ERROR_CODES } from './status.ts'

const link = z.url().describe('Absolute http(s) address.')
const code = z.enum(ERROR_CODES).describe('Which failure it is; the list is closed.')
const message = z.string().min(1).describe('For a person: what happened, to what, and what to do.')
const index = z.int().min(0).describe('Place of the input in the request.')
const origin = z
  .string()
  .describe('The list entry as it was sent, the last component of the file name, or "clipboard".')
const destination = z.string().describe('"provider/configName".')

const mirror = z
  .strictObject({ destination, imgUrl: link.optional(), error: z.string().optional() })
  .describe('A copy: its address, or why there is none.')

export const item = z
  .strictObject({
    index,
    origin,
    imgUrl: link,
    fileName: z.string().describe('Last segment of the key it was stored under.'),
    size: z.int().min(0).describe('Bytes.'),
    type: z.string().describe('Provider of the destination, such as `local` or `s3`.'),
    contentType: z.string().describe('MIME type by the bytes.'),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    expiresAt: z.string().optional().describe('When the file may go, if it does: a time of RFC 3339.'),
    destination: destination.optional(),
    mirrors: z.array(mirror).optional(),
  })
  .meta({ id: 'Item', description: 'One stored file.' })

const result = z.array(link).describe('One address for each stored input, in the order of the inputs.')

/** Every input was stored. */
export const uploaded = z
  .strictObject({ success: z.literal(true), result, items: z.array(item) })
  .meta({ id: 'Uploaded', description: 'Every input was stored.' })

const failed = {
  success: z.literal(false),
  message,
  msg: z.string().describe('The same as "message"; some clients read this name.'),
  code,
  requestId: z.string().min(1).describe('As in X-Request-Id and in the log.'),
}

/** Any failure; `errors` belongs to uploads. */
export const failure = z
  .strictObject({ ...failed, errors: z.array(z.never()).optional() })
  .meta({ id: 'Failure', description: 'What every failure says.' })

export const inputFailure = z
  .strictObject({ index, origin, code, message })
  .meta({ id: 'InputFailure', description: 'One input that was not stored.' })

/** An upload that was refused, or of which not every input was stored. */
export const uploadFailure = z
  .strictObject({
    ...failed,
    result: result.min(1).optional(),
    items: z.array(item).min(1).optional(),
    errors: z.array(inputFailure),
  })
  .meta({
    id: 'UploadFailure',
    description:
      '"result" and "items" have what was stored, and are left out when nothing was; "errors" has what was not.',
  })

/** Everything is stored, and what follows is not done. */
export const pending = z
  .strictObject({
    success: z.literal(false),
    stage: z.literal('finalization'),
    finalizationId: z.string().min(1),
    message,
  })
  .meta({ id: 'Pending', description: 'Everything is stored; repeat with finalizationId to finish.' })

export const alive = z
  .strictObject({ success: z.literal(true), result: z.literal('alive') })
  .meta({ id: 'Alive', description: 'The server is reachable.' })

/** GET /history. */
export const history = z
  .strictObject({
    success: z.literal(true),
    result: z.array(
      z.strictObject({
        url: link,
        name: z.string().describe('Last component of what was uploaded.'),
        time: z.string().describe('When it was stored: a time of RFC 3339.'),
        size: z.int().min(0).describe('Bytes.'),
        contentType: z.string().describe('MIME type by the bytes.'),
        expiresAt: z.string().optional().describe('When the file may go, if it does: a time of RFC 3339.'),
      }),
    ),
  })
  .meta({ id: 'History', description: 'What the caller uploaded lately, newest first.' })

export type Uploaded = z.infer<typeof uploaded>
export type UploadFailure = z.infer<typeof uploadFailure>
export type Failure = z.infer<typeof failure>
export type History = z.infer<typeof history>
export type Pending = z.infer<typeof pending>

/** A JSON body of POST /upload; list.ts reads it. */
export const list = z
  .looseObject({
    list: z
      .array(z.string().min(1))
      .nullish()
      .describe(
        'Absolute paths on the machine of the server, and file:, http:, https: and data: addresses. Missing, null or empty: the clipboard.',
      ),
  })
  .meta({ id: 'List', description: 'What to upload, by name.' })
