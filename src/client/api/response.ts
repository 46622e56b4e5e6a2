import type { RawReply } from '../../http/exchange.ts'
import { isRecord, membersOf, parseJson } from '../../members.ts'
import { isLink } from '../../safe-text.ts'
import { readTime } from '../../times.ts'

/** A stored file according to the response. Other servers of this API return `url` only. */
interface StoredFile {
  readonly url: string
  /** Size of the stored file, bytes. */
  readonly size?: number
  readonly sha256?: string
  readonly contentType?: string
  readonly expiresAt?: string
  readonly warning?: string
}

/** The validated response of an upload server. */
export interface UploadResponse {
  /** The stored files: one of an upload, all of a finalized one. Empty if it failed. */
  readonly files: readonly StoredFile[]
  readonly message?: string
  /** Error code of a failure. */
  readonly code?: string
  readonly finalizationId?: string
}

/** Describes a response that is not valid. */
export class ResponseError extends Error {
  /** Whether it does not come from an upload server, such as the error page of a reverse proxy. */
  readonly isForeign: boolean

  constructor(message: string, isForeign = false) {
    super(message)
    this.isForeign = isForeign
  }
}

/** Limit for reading a response. */
export const REPLY_LIMITS = { maxReplyBytes: 16 * 1024 * 1024 }
/** Maximum length of a message, characters. */
const MAX_MESSAGE = 2000

/**
 * Reads the response to an upload.
 *
 * @param host host of the server, for messages
 * @throws ResponseError
 */
export function readResponse(
  { status, text, isCut }: Pick<RawReply, 'status' | 'text' | 'isCut'>,
  host: string,
): UploadResponse {
  const notUploadServer = `${host} responded with ${status}, which is not the response of an upload server`
  if (isCut) {
    const most = REPLY_LIMITS.maxReplyBytes / 1024 / 1024
    throw new ResponseError(`${notUploadServer}: it is larger than ${most} MiB`)
  }
  const isOk = status >= 200 && status < 300
  const value = parseJson(text)
  if (!isRecord(value)) throw new ResponseError(notUploadServer, true)
  const { success, result, items, errors, code, finalizationId } = value
  // Reverse proxies may respond in JSON, too.
  if (!isOk && typeof success !== 'boolean') throw new ResponseError(notUploadServer, true)
  const failure = Array.isArray(errors) && errors.length > 0 ? membersOf(errors[0]) : undefined
  const stored = Array.isArray(items) ? items : (Array.isArray(result) ? result : []).map(toItem)
  const said = failure?.['message'] ?? value['message']
  return {
    files: isOk && success !== false && !failure ? stored.map(item => readItem(item, host)) : [],
    ...(typeof said === 'string' && said !== '' && { message: said.slice(0, MAX_MESSAGE) }),
    ...codeIn(failure?.['code'] ?? code),
    // It is printed as part of a command line.
    ...(typeof finalizationId === 'string' && /^[\w-]{1,100}$/.test(finalizationId) && { finalizationId }),
  }
}

const toItem = (imgUrl: unknown) => ({ imgUrl })

function readItem(item: unknown, host: string): StoredFile {
  const { imgUrl, size, sha256, contentType, expiresAt, warning } = membersOf(item)
  if (!isLink(imgUrl)) throw new ResponseError(`the response of ${host} has no valid link`)
  return {
    url: imgUrl,
    ...(Number.isSafeInteger(size) && { size: Number(size) }),
    ...(typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) && { sha256 }),
    ...(typeof contentType === 'string' &&
      /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(contentType) && { contentType }),
    ...(typeof expiresAt === 'string' && readTime(expiresAt) !== undefined && { expiresAt }),
    ...(typeof warning === 'string' && { warning: warning.slice(0, MAX_MESSAGE) }),
  }
}

/** Validated, because the code is written into reports. */
function codeIn(code: unknown): { code?: string } {
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? { code } : {}
}
