import type { RawReply } from '../../http/exchange.ts'
import { isObject, membersOf } from '../../members.ts'
import { isLink } from '../../safe-text.ts'
import { readTime } from '../../times.ts'

/** The outcome of one input according to the response. */
interface InputOutcome {
  readonly url?: string
  readonly error?: string
  /** Error code of a failure. */
  readonly code?: string
  /** Size of the stored file, bytes. */
  readonly size?: number
  readonly sha256?: string
  readonly contentType?: string
  readonly expiresAt?: string
  readonly warning?: string
}

/** The validated response of an upload server. */
export interface UploadResponse {
  /** The outcome of each input, in order. Missing if the response has none. */
  readonly outcomes: readonly InputOutcome[]
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

/** Limits for reading a response: bytes and milliseconds. */
export const REPLY_LIMITS = { maxReplyBytes: 16 * 1024 * 1024, maxReplyMs: 60_000 }
/** Maximum length of a message, characters. */
const MAX_MESSAGE = 2000

/**
 * Reads the response to an upload. Other servers of this API return fewer fields than this one.
 *
 * @param count number of inputs that were sent; Infinity if it is not known
 * @param host host of the server, for messages
 * @throws ResponseError
 */
export function readResponse(
  { status, text, isCut }: Pick<RawReply, 'status' | 'text' | 'isCut'>,
  count: number,
  host: string,
): UploadResponse {
  const notUploadServer = `${host} responded with ${status}, which is not the response of an upload server`
  if (isCut) {
    const { maxReplyBytes, maxReplyMs } = REPLY_LIMITS
    const limits = `it is larger than ${maxReplyBytes / 1024 / 1024} MiB or takes longer than ${maxReplyMs / 1000} s`
    throw new ResponseError(`${notUploadServer}: ${limits}`)
  }
  const isOk = status >= 200 && status < 300
  const value = parse(text)
  if (!isObject(value) || Array.isArray(value)) throw new ResponseError(notUploadServer, true)
  const { success, result, items, errors, message, code, finalizationId } = value
  // Reverse proxies may respond in JSON, too.
  if (!isOk && typeof success !== 'boolean') throw new ResponseError(notUploadServer, true)
  const hasSucceeded = isOk && success !== false
  const outcomes = Array.isArray(items)
    ? readItems(items, count, host)
    : readLinks(hasSucceeded && Array.isArray(result) ? result : [], count, host)
  const failures = readErrors(errors)
  for (const [index, failure] of failures) if (index < count) outcomes[index] = failure
  const isLikely = hasSucceeded || outcomes.filter(one => one?.url !== undefined).length < count
  // If the response contradicts itself, no file counts as stored.
  const isClear = isLikely && failures.every(([index]) => index < count)
  return {
    outcomes: isClear ? outcomes : [],
    ...(typeof message === 'string' && message !== '' && { message: message.slice(0, MAX_MESSAGE) }),
    ...codeIn(code),
    // It is printed as part of a command line.
    ...(typeof finalizationId === 'string' && /^[\w-]{1,100}$/.test(finalizationId) && { finalizationId }),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readItems(items: readonly unknown[], count: number, host: string): InputOutcome[] {
  const outcomes: InputOutcome[] = []
  for (const item of items) {
    const { index, imgUrl, size, sha256, contentType, expiresAt, warning } = membersOf(item)
    if (!isIndex(index) || index >= count || outcomes[index] !== undefined)
      throw new ResponseError(
        `the response of ${host} does not match the request: the numbers of its links are wrong`,
      )
    outcomes[index] = {
      ...readLink(imgUrl, host),
      ...(isIndex(size) && { size }),
      ...(typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) && { sha256 }),
      ...(typeof contentType === 'string' &&
        /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(contentType) && { contentType }),
      ...(typeof expiresAt === 'string' && readTime(expiresAt) !== undefined && { expiresAt }),
      ...(typeof warning === 'string' && { warning: warning.slice(0, MAX_MESSAGE) }),
    }
  }
  return outcomes
}

/** Without `index`, only the order assigns links to files. */
function readLinks(links: readonly unknown[], count: number, host: string): InputOutcome[] {
  if (links.length > 0 && count !== Infinity && links.length !== count)
    throw new ResponseError(
      `the response of ${host} has ${links.length} instead of ${count} links, and does not assign them to files`,
    )
  return links.map(link => readLink(link, host))
}

function readLink(link: unknown, host: string): InputOutcome {
  return isLink(link) ? { url: link } : { error: `the response of ${host} has no valid link` }
}

function readErrors(errors: unknown): [number, InputOutcome][] {
  return (Array.isArray(errors) ? errors : []).flatMap((one): [number, InputOutcome][] => {
    const { index, message, code } = membersOf(one)
    const error = typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : 'the file was not stored'
    return isIndex(index) ? [[index, { error, ...codeIn(code) }]] : []
  })
}

/** Validated, because the code is written into reports. */
function codeIn(code: unknown): { code?: string } {
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? { code } : {}
}

function isIndex(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
