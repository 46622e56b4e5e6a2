import * as z from '../packages/zod.ts'
import { ERROR_CODES } from './status.ts'

const link = z.url().describe('Absolute http(s) URL.')
// An enum alone would make generated clients reject a new code.
const code = z
  .union([z.enum(ERROR_CODES), z.string()])
  .describe(
    'Machine-readable error code. New codes may be added: handle an unknown code like its HTTP status.',
  )
const message = z.string().min(1).describe('Human-readable message: what failed, why, and what to do.')
const index = z.int().min(0).describe('Position of the input in the request, counted from 0.')
const origin = z
  .string()
  .describe('The list entry as it was sent, the name of the file in the form, or "clipboard".')
const destination = z.string().describe('Destination, as "provider/configName".')

const mirror = z
  .strictObject({ destination, imgUrl: link.optional(), error: z.string().optional() })
  .describe('A copy at a mirror: its URL, or why it was not stored.')

export const item = z
  .strictObject({
    index,
    origin,
    imgUrl: link,
    fileName: z.string().describe('Last segment of the object key.'),
    size: z.int().min(0).describe('Size of the file in bytes.'),
    provider: z.string().describe('Provider that stored the file, such as `local` or `s3`.'),
    type: z.string().describe("The same, under PicGo's name."),
    contentType: z.string().describe('Media type, detected from the bytes.'),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    expiresAt: z
      .string()
      .optional()
      .describe('When the file expires, as an RFC 3339 timestamp. Missing if it never expires.'),
    destination: destination
      .optional()
      .describe(
        'Fallback that stored the file, as "provider/configName". Missing if the requested destination did.',
      ),
    mirrors: z
      .array(mirror)
      .optional()
      .describe('Copies at mirrors. Missing if the destination has no mirrors.'),
    warning: z
      .string()
      .optional()
      .describe(
        'Why a file with the extension of an image is not an image: it is empty, or has other bytes.',
      ),
  })
  .meta({ id: 'Item', description: 'One stored file.' })

const result = z.array(link).describe('One URL per stored input, in the order of the inputs.')

/** Every input was stored. */
export const uploaded = z
  .strictObject({ success: z.literal(true), result, items: z.array(item) })
  .meta({ id: 'Uploaded', description: 'Every input was stored.' })

const failed = {
  success: z.literal(false),
  message,
  msg: z.string().describe('Same as "message", for clients that read this name.'),
  code,
  requestId: z.string().min(1).describe('ID of the request, as in the X-Request-Id header and in the log.'),
}

/** Every failure but those of uploads, which also have `errors`. */
export const failure = z
  .strictObject({ ...failed, errors: z.array(z.never()).optional() })
  .meta({ id: 'Failure', description: 'Response to every failed request.' })

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
      '"errors" lists the inputs that were not stored. "result" and "items" list those that were, and are missing if none was.',
  })

/** Every file is stored, but a post-upload step failed. */
export const pending = z
  .strictObject({
    success: z.literal(false),
    stage: z.literal('finalization'),
    finalizationId: z.string().min(1),
    message,
  })
  .meta({
    id: 'Pending',
    description:
      'Every file is stored, but a post-upload step failed. Retry with finalizationId to complete the upload.',
  })

export const alive = z
  .strictObject({ success: z.literal(true), result: z.literal('alive') })
  .meta({ id: 'Alive', description: 'The server is reachable.' })

export const healthy = z
  .strictObject({ success: z.literal(true), status: z.literal('ok') })
  .meta({ id: 'Healthy', description: 'The server is reachable.' })

export const ready = z
  .strictObject({ success: z.literal(true), status: z.literal('ready') })
  .meta({ id: 'Ready', description: 'The server accepts uploads.' })

/** JSON body of POST /upload/known; known.ts reads it. */
export const asked = z
  .object({
    files: z
      .array(
        z.object({
          name: z.string(),
          sha256: z
            .string()
            .regex(/^[0-9a-f]{64}$/)
            .optional(),
          size: z.int().min(0).optional(),
        }),
      )
      .max(1000),
  })
  .meta({ id: 'Asked', description: 'Files that the client has.' })

export const known = z
  .object({
    success: z.literal(true),
    files: z.array(z.object({ url: link.optional(), send: z.literal(true).optional() })),
  })
  .meta({ id: 'Known', description: 'The link of each file, or that it must be sent.' })

/** Response of GET /history. */
export const history = z
  .strictObject({
    success: z.literal(true),
    result: z.array(
      z.strictObject({
        url: link,
        name: z.string().describe('Name of the uploaded file, without folders.'),
        time: z.string().describe('When the file was stored, as an RFC 3339 timestamp.'),
        size: z.int().min(0).describe('Size of the file in bytes.'),
        contentType: z.string().describe('Media type, detected from the bytes.'),
        expiresAt: z
          .string()
          .optional()
          .describe('When the file expires, as an RFC 3339 timestamp. Missing if it never expires.'),
      }),
    ),
  })
  .meta({ id: 'History', description: 'Recent uploads of this client, newest first.' })

export type Uploaded = z.infer<typeof uploaded>
export type UploadFailure = z.infer<typeof uploadFailure>
export type Failure = z.infer<typeof failure>
export type History = z.infer<typeof history>
export type Pending = z.infer<typeof pending>

/** JSON body of POST /upload; list.ts reads it. */
export const list = z
  .looseObject({
    list: z
      .array(z.string().min(1))
      .nullish()
      .describe(
        'Absolute file paths on the server, and file:, http:, https: and data: URLs. If missing, null or empty, the image in the clipboard is uploaded.',
      ),
  })
  .meta({ id: 'List', description: 'Files, URLs or the clipboard to upload.' })
