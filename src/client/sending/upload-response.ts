import type { RawReply } from '../../http/exchange.ts'
import { isObject, membersOf } from '../../members.ts'
import { isLink } from '../../safe-text.ts'
import { readTime } from '../../times.ts'

/** What is said of one input. */
interface Said {
  readonly url?: string
  readonly error?: string
  /** Of a failure, as the API names it. */
  readonly code?: string
  /** Of what is stored: bytes, hash, media type. */
  readonly size?: number
  readonly sha256?: string
  readonly contentType?: string
  readonly expiresAt?: string
}

/** What is believed of an upload server's answer: each member has been looked at. */
export interface UploadResponse {
  /** Of each input, in order; missing where nothing is said of one. */
  readonly outcomes: readonly Said[]
  readonly message?: string
  /** Of a failure, as the API names it. */
  readonly code?: string
  readonly finalizationId?: string
}

/** Says what is wrong with an answer that can't be believed. */
export class ResponseError extends Error {
  /** Whether nothing of it looks like an upload server's: a proxy's page. */
  readonly isForeign: boolean

  constructor(message: string, isForeign = false) {
    super(message)
    this.isForeign = isForeign
  }
}

/** Of an answer no more is read. */
export const REPLY_LIMITS = { maxReplyBytes: 16 * 1024 * 1024, maxReplyMs: 60_000 }
/** Most of a message, characters. */
const MAX_MESSAGE = 2000

/**
 * Reads the answer to an upload: ours, or that of another server of this API, which says less.
 *
 * @param count inputs that were sent; Infinity: not known
 * @param host who answers, for messages
 * @throws ResponseError
 */
export function readResponse(
  { status, text, isCut }: Pick<RawReply, 'status' | 'text' | 'isCut'>,
  count: number,
  host: string,
): UploadResponse {
  const noAnswer = `${host} answered ${status}, which is no answer of an upload server`
  if (isCut) {
    const { maxReplyBytes, maxReplyMs } = REPLY_LIMITS
    const limits = `it is larger than ${maxReplyBytes} bytes or takes longer than ${maxReplyMs / 1000} s`
    throw new ResponseError(`${noAnswer}: ${limits}`)
  }
  const isOk = status >= 200 && status < 300
  const value = parse(text)
  if (!isObject(value) || Array.isArray(value)) throw new ResponseError(noAnswer, true)
  const { success, result, items, errors, message, code, finalizationId } = value
  // Gateways answer in JSON, too.
  if (!isOk && typeof success !== 'boolean') throw new ResponseError(noAnswer, true)
  const hasSucceeded = isOk && success !== false
  const outcomes = Array.isArray(items)
    ? readItems(items, count, host)
    : readLinks(hasSucceeded && Array.isArray(result) ? result : [], count, host)
  const failures = readErrors(errors)
  for (const [index, failure] of failures) if (index < count) outcomes[index] = failure
  const isLikely = hasSucceeded || outcomes.filter(one => one?.url !== undefined).length < count
  // Of what contradicts itself nothing is believed to be stored.
  const isClear = isLikely && failures.every(([index]) => index < count)
  return {
    outcomes: isClear ? outcomes : [],
    ...(typeof message === 'string' && message !== '' && { message: message.slice(0, MAX_MESSAGE) }),
    ...codeIn(code),
    // It becomes a part of a command.
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

function readItems(items: readonly unknown[], count: number, host: string): Said[] {
  const outcomes: Said[] = []
  for (const item of items) {
    const { index, imgUrl, size, sha256, contentType, expiresAt } = membersOf(item)
    if (!isIndex(index) || index >= count || outcomes[index] !== undefined)
      throw new ResponseError(
        `the answer of ${host} does not fit what was sent: it numbers the links wrongly`,
      )
    outcomes[index] = {
      ...readLink(imgUrl, host),
      ...(isIndex(size) && { size }),
      ...(typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) && { sha256 }),
      ...(typeof contentType === 'string' &&
        /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(contentType) && { contentType }),
      ...(typeof expiresAt === 'string' && readTime(expiresAt) !== undefined && { expiresAt }),
    }
  }
  return outcomes
}

/** Without numbers only the order says whose a link is. */
function readLinks(links: readonly unknown[], count: number, host: string): Said[] {
  if (links.length > 0 && count !== Infinity && links.length !== count)
    throw new ResponseError(
      `the answer of ${host} holds ${links.length} instead of ${count} links: whose they are is not said`,
    )
  return links.map(link => readLink(link, host))
}

function readLink(link: unknown, host: string): Said {
  return isLink(link) ? { url: link } : { error: `what ${host} answered with is no link` }
}

function readErrors(errors: unknown): [number, Said][] {
  return (Array.isArray(errors) ? errors : []).flatMap((one): [number, Said][] => {
    const { index, message, code } = membersOf(one)
    const error = typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : 'it was not stored'
    return isIndex(index) ? [[index, { error, ...codeIn(code) }]] : []
  })
}

/** A code goes into reports. */
function codeIn(code: unknown): { code?: string } {
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? { code } : {}
}

function isIndex(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
