import { within } from '../flow/time-limit.ts'

/** What is said of one input. */
interface Said {
  readonly url?: string
  readonly error?: string
  /** Of a failure, as the API names it. */
  readonly code?: string
  /** Of what is stored: bytes, hash, media type. */
  readonly size?: number
  readonly sha256?: string
  readonly type?: string
}

/** What is believed of an upload server's answer: each member has been looked at. */
export interface Answer {
  /** Of each input, in order; missing where nothing is said of one. */
  readonly outcomes: readonly Said[]
  readonly message?: string
  /** Of a failure, as the API names it. */
  readonly code?: string
  readonly finalizationId?: string
}

/** Says what is wrong with an answer that can't be believed. */
export class AnswerError extends Error {
  /** Whether nothing of it looks like an upload server's: a proxy's page. */
  readonly isForeign: boolean

  constructor(message: string, isForeign = false) {
    super(message)
    this.isForeign = isForeign
  }
}

/** Most of an answer that is read, bytes. */
const MAX_BYTES = 16 * 1024 * 1024
/** How long an answer may take from its first byte to its last, ms. */
const MAX_MS = 60_000
/** Most of a message or a link, characters. */
const MAX_MESSAGE = 2000
const MAX_LINK = 8192

interface Limits {
  readonly bytes: number
  readonly ms: number
}

/**
 * Reads the answer to an upload: ours, or that of another server of this API, which says less.
 *
 * @param count inputs that were sent; Infinity: not known
 * @param host who answers, for messages
 * @throws AnswerError
 */
export async function readAnswer(
  response: Response,
  count: number,
  host: string,
  limits: Limits = { bytes: MAX_BYTES, ms: MAX_MS },
): Promise<Answer> {
  const noAnswer = `${host} answered ${response.status}, which is no answer of an upload server`
  const body = await readBody(response, noAnswer, limits)
  const value = parse(body.toString('utf8'))
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AnswerError(noAnswer, true)
  const { success, result, items, errors, message, code, finalizationId } = value as Record<string, unknown>
  // Gateways answer in JSON, too.
  if (!response.ok && typeof success !== 'boolean') throw new AnswerError(noAnswer, true)
  const hasSucceeded = response.ok && success !== false
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

async function readBody(response: Response, noAnswer: string, { bytes, ms }: Limits): Promise<Buffer> {
  const tooSlow = () => new AnswerError(`${noAnswer}: it takes longer than ${ms / 1000} s`)
  const body = await within(readAtMost(response, bytes + 1), ms, tooSlow)
  if (body.length <= bytes) return body
  throw new AnswerError(`${noAnswer}: it is larger than ${bytes} bytes`)
}

/** The beginning of an answer's body, of at most `limit` bytes; the rest is not waited for. */
async function readAtMost(response: Response, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= limit) break
  }
  return Buffer.concat(chunks).subarray(0, limit)
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
    const { index, imgUrl, size, sha256, contentType } = (item ?? {}) as Record<string, unknown>
    if (!isIndex(index) || index >= count || outcomes[index] !== undefined)
      throw new AnswerError(`the answer of ${host} does not fit what was sent: it numbers the links wrongly`)
    outcomes[index] = {
      ...readLink(imgUrl, host),
      ...(isIndex(size) && { size }),
      ...(typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) && { sha256 }),
      ...(typeof contentType === 'string' &&
        /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(contentType) && { type: contentType }),
    }
  }
  return outcomes
}

/** Without numbers only the order says whose a link is. */
function readLinks(links: readonly unknown[], count: number, host: string): Said[] {
  if (links.length > 0 && count !== Infinity && links.length !== count)
    throw new AnswerError(
      `the answer of ${host} holds ${links.length} instead of ${count} links: whose they are is not said`,
    )
  return links.map(link => readLink(link, host))
}

/** As the API has it: an absolute address, percent-encoded. Anything else might be more than an address where it is put. */
function readLink(link: unknown, host: string): Said {
  const isFine =
    typeof link === 'string' &&
    link.length <= MAX_LINK &&
    /^https?:\/\/[^\s\p{C}"'<>\\^`{|}]+$/iu.test(link) &&
    URL.canParse(link)
  return isFine ? { url: link } : { error: `what ${host} answered with is no link` }
}

function readErrors(errors: unknown): [number, Said][] {
  return (Array.isArray(errors) ? errors : []).flatMap((one): [number, Said][] => {
    const { index, message, code } = (one ?? {}) as Record<string, unknown>
    const error = typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : 'it was not stored'
    return isIndex(index) ? [[index, { error, ...codeIn(code) }]] : []
  })
}

/** A code goes into reports. */
function codeIn(code: unknown): { code?: string } {
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? { code } : {}
}

function isIndex(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0
}
