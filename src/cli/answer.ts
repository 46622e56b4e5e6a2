import { readAtMost } from './read-at-most.ts'

/** What is believed of an upload server's answer: each member has been looked at. */
export interface Answer {
  /** Link or failure for each input, in order; missing where nothing is said of one. */
  readonly outcomes: readonly { readonly url?: string; readonly error?: string }[]
  readonly message?: string
  readonly finalizationId?: string
}

/** Says what is wrong with an answer that can't be believed. */
export class AnswerError extends Error {}

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
 * @param count inputs that were sent
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
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new AnswerError(noAnswer)
  const { success, result, items, errors, message, finalizationId } = value as Record<string, unknown>
  const hasSucceeded = response.ok && success !== false
  const outcomes = Array.isArray(items)
    ? readItems(items, count, host)
    : readLinks(hasSucceeded && Array.isArray(result) ? result : [], count, host)
  const failures = readErrors(errors)
  for (const [index, error] of failures) if (index < count) outcomes[index] = { error }
  const isLikely = hasSucceeded || outcomes.filter(one => one?.url !== undefined).length < count
  // Of what contradicts itself nothing is believed to be stored.
  const isClear = isLikely && failures.every(([index]) => index < count)
  return {
    outcomes: isClear ? outcomes : [],
    ...(typeof message === 'string' && message !== '' && { message: message.slice(0, MAX_MESSAGE) }),
    // It becomes a part of a command.
    ...(typeof finalizationId === 'string' && /^[\w-]{1,100}$/.test(finalizationId) && { finalizationId }),
  }
}

async function readBody(response: Response, noAnswer: string, { bytes, ms }: Limits): Promise<Buffer> {
  let timer: NodeJS.Timeout | undefined
  const tooSlow = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AnswerError(`${noAnswer}: it takes longer than ${ms / 1000} s`)), ms)
  })
  try {
    const body = await Promise.race([readAtMost(response, bytes + 1), tooSlow])
    if (body.length <= bytes) return body
    throw new AnswerError(`${noAnswer}: it is larger than ${bytes} bytes`)
  } finally {
    clearTimeout(timer)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Outcomes = { url?: string; error?: string }[]

function readItems(items: readonly unknown[], count: number, host: string): Outcomes {
  const outcomes: Outcomes = []
  for (const item of items) {
    const { index, imgUrl } = (item ?? {}) as Record<string, unknown>
    if (!isIndex(index) || index >= count || outcomes[index] !== undefined)
      throw new AnswerError(`the answer of ${host} does not fit what was sent: it numbers the links wrongly`)
    outcomes[index] = readLink(imgUrl, host)
  }
  return outcomes
}

/** Without numbers only the order says whose a link is. */
function readLinks(links: readonly unknown[], count: number, host: string): Outcomes {
  if (links.length > 0 && links.length !== count)
    throw new AnswerError(
      `the answer of ${host} holds ${links.length} instead of ${count} links: whose they are is not said`,
    )
  return links.map(link => readLink(link, host))
}

/** As the API has it: an absolute address, percent-encoded. Anything else might be more than an address where it is put. */
function readLink(link: unknown, host: string): { url: string } | { error: string } {
  const isFine =
    typeof link === 'string' &&
    link.length <= MAX_LINK &&
    /^https?:\/\/[^\s\p{C}"'<>\\^`{|}]+$/iu.test(link) &&
    URL.canParse(link)
  return isFine ? { url: link } : { error: `what ${host} answered with is no link` }
}

function readErrors(errors: unknown): [number, string][] {
  return (Array.isArray(errors) ? errors : []).flatMap((one): [number, string][] => {
    const { index, message } = (one ?? {}) as Record<string, unknown>
    const said = typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : 'it was not stored'
    return isIndex(index) ? [[index, said]] : []
  })
}

function isIndex(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0
}
