import { createHash, randomUUID } from 'node:crypto'
import { messageOf } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { type Passing, retry } from '../../flow/retry.ts'
import { bodyOf, makeMultipartBody } from '../../http/request-body.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import type { Entry } from '../entries.ts'
import { interruption, type Result } from '../result.ts'
import { type Prepared, prepare } from './prepare.ts'
import { openRemote, type Remote, type RemoteRequest, type RequestOutcome } from './remote.ts'
import type { Listener, Sender } from './sender.ts'
import { PATIENCE, type Patience } from './still-there.ts'

/** Of a server that has stored files and gives no links until it has finished. */
const UNFINISHED = 'it is stored, but not finished'

export interface SendOptions {
  /** Address of the server, with or without `/upload`. */
  server: string
  key?: string
  picbed?: string | undefined
  configName?: string | undefined
  /** When the files may go. */
  expires?: string
  /** Requests at once. */
  concurrency: number
  /** How long transient failures are retried, milliseconds. 0: they are not retried. */
  retryMaxTime: number
  /** Waits for a server that is not there yet. */
  wait?: boolean
  /** Part of the key of each request: the same job sends nothing twice. Default: the job of the CI host, else none. */
  job?: string
}

/** Files up to this size are sent together, up to so many and so many bytes in all: a request costs more than they do. */
const SMALL_BYTES = 64 * 1024
const TOGETHER = 16
const TOGETHER_BYTES = 512 * 1024

type Numbered = readonly [index: number, entry: Entry]

/** What `upload` does unless told otherwise. */
export const SENDING = { concurrency: 4, retryMaxTime: 5 * 60_000 }

/** Sends entries through a running server, several requests at once, each until it is answered for good. */
export function createRemoteSender(options: SendOptions, context: Context): Sender {
  return {
    send: (entries, signal, listener) => sendToServer(entries, options, context, signal, listener),
    explainDead: async () => undefined,
  }
}

async function sendToServer(
  entries: readonly Entry[],
  options: SendOptions,
  context: Context,
  signal: AbortSignal,
  listener: Listener,
): Promise<void> {
  const remote = openRemote(options.server, options.key, context, patienceIn(options.retryMaxTime))
  const persist = createPersistence(remote, options, listener)
  const job = options.job ?? jobOf(context.env) ?? randomUUID()
  const { picbed, configName, expires } = options
  const notes = new Set<string>()

  const fail = ([index, { name }]: Numbered, error: string, code?: string) =>
    listener.settle(index, { name, error: context.mask(error), ...(code !== undefined && { code }) })

  async function sendBatch(batch: readonly Numbered[]): Promise<void> {
    const parts: (readonly [Numbered, Prepared])[] = []
    for (const one of batch) {
      try {
        parts.push([one, await prepare(one[1], context)])
      } catch (error) {
        if (signal.aborted) listener.settle(one[0], interruption(one[1].name))
        else fail(one, messageOf(error), 'source_failed')
      }
    }
    try {
      if (parts.length > 0) await sendParts(parts)
    } finally {
      for (const [, part] of parts) await part.close()
    }
  }

  async function sendParts(parts: readonly (readonly [Numbered, Prepared])[]): Promise<void> {
    const { folder } = parts[0]?.[1].entry ?? {}
    const where = { picbed, configName, path: folder, expires }
    const key = keyOf([
      job,
      where,
      parts.map(([, { entry, fileName, facts }]) => [fileName || entry.name, facts.sha256]),
    ])
    const request = toRequest(
      parts.map(([, part]) => part),
      where,
    )
    let reply = await persist(request, key, signal)
    // A job that is run again after the default destination was changed.
    if (reply.code === 'idempotency_key_reused') reply = await persist(request, randomUUID(), signal)
    const { outcomes, message, code, finalizationId } = reply
    if (finalizationId !== undefined)
      notes.add(oneLine(context.mask(`${UNFINISHED}: ${message ?? ''}`.trim())))
    for (const [place, [numbered, part]] of parts.entries()) {
      const [index, { name }] = numbered
      const said = outcomes[place]
      if (finalizationId !== undefined)
        listener.settle(index, { name, ...part.facts, error: UNFINISHED, finalizationId })
      else if (said?.url !== undefined) listener.settle(index, { name, url: said.url, ...merge(part, said) })
      else if (parts.length > 1 && mayGoAlone(reply)) await sendParts([[numbered, part]])
      else fail(numbered, said?.error ?? message ?? 'the answer has no link for it', said?.code ?? code)
    }
  }

  await mapConcurrently(batchesOf(entries), options.concurrency, async batch => {
    if (!signal.aborted) await sendBatch(batch)
    else for (const [index, { name }] of batch) listener.settle(index, interruption(name))
  })
  for (const note of notes) context.note(note)
}

/** Who waits for a shorter time altogether is less patient with each answer, too. */
function patienceIn(retryMaxTime: number): Patience {
  if (retryMaxTime === 0) return PATIENCE // Nothing is retried, but each response is awaited.
  const within = (ms: number) => Math.min(ms, Math.max(retryMaxTime, LEAST_PATIENCE_MS))
  return { ...PATIENCE, quietMs: within(PATIENCE.quietMs), answerMs: within(PATIENCE.answerMs) }
}

const LEAST_PATIENCE_MS = 2000

/** Whether what was refused together may be taken one by one. The answer to a request that stored something is kept by its key. */
function mayGoAlone({ status, code, isUnclear }: RequestOutcome): boolean {
  return (
    status !== undefined && !isUnclear && !['unauthorized', 'unreachable', 'interrupted'].includes(code ?? '')
  )
}

/** What the server says of it, and what is known here of the same bytes. */
function merge(
  { facts }: Prepared,
  { size, sha256, contentType, expiresAt }: RequestOutcome['outcomes'][number],
): Partial<Result> {
  const isSame = sha256 === undefined || sha256 === facts.sha256
  return {
    ...(isSame && facts),
    ...(size !== undefined && { size }),
    ...(sha256 && { sha256 }),
    ...(expiresAt && { expiresAt }),
    ...(contentType && { contentType }),
  }
}

/** Small files that follow each other and go into one folder are one request, everything else is one by itself. */
function batchesOf(entries: readonly Entry[]): Numbered[][] {
  const batches: Numbered[][] = []
  let room = 0
  for (const numbered of entries.entries()) {
    const [, { kind, size, folder }] = numbered
    const last = batches.at(-1)
    const isSmall = kind === 'file' && size <= SMALL_BYTES
    if (isSmall && last && size <= room && last.length < TOGETHER && last[0]?.[1].folder === folder) {
      last.push(numbered)
      room -= size
    } else {
      batches.push([numbered])
      room = isSmall ? TOGETHER_BYTES - size : -1
    }
  }
  return batches
}

function toRequest(parts: readonly Prepared[], query: NonNullable<RemoteRequest['query']>): RemoteRequest {
  const files = parts.flatMap(({ fileName, content }) =>
    content ? { field: 'file', fileName, content } : [],
  )
  const list = Buffer.from(JSON.stringify({ list: parts.map(({ entry }) => entry.name) }))
  const body = files.length > 0 ? makeMultipartBody([], files) : bodyOf(list, 'application/json')
  return { query, count: parts.length, body }
}

const keyOf = (what: unknown) => createHash('sha256').update(JSON.stringify(what)).digest('hex')

/** What tells runs of a CI job apart, but not its repetitions. */
const JOB_VARIABLES = [
  ['GITHUB_SERVER_URL', 'GITHUB_REPOSITORY', 'GITHUB_RUN_ID'], // Gitea's and Forgejo's runners, too
  ['CI_PROJECT_URL', 'CI_PIPELINE_ID'],
  ['BUILDKITE_BUILD_ID'],
  ['CI_REPO_URL', 'CI_PIPELINE_NUMBER'],
  ['BUILD_URL'],
]

function jobOf(env: Context['env']): string | undefined {
  const names = JOB_VARIABLES.find(all => all.every(name => env[name]))
  return names && JSON.stringify(names.map(name => env[name]))
}

class Trouble extends Error {
  readonly reply: RequestOutcome

  constructor(reply: RequestOutcome) {
    super(reply.message)
    this.reply = reply
  }
}

/**
 * Repeats requests until they are answered for good or the time is over. It counts from the first failure of a request, or
 * of any since the last answer: when the server is gone, everything waits together and gives up together.
 */
function createPersistence(remote: Remote, { retryMaxTime, wait = false }: SendOptions, listener: Listener) {
  let troubleSince: number | undefined
  let hasAnswered = false
  /** What nothing more is sent after. */
  let last: RequestOutcome | undefined

  return async (request: RemoteRequest, key: string, signal: AbortSignal): Promise<RequestOutcome> => {
    let ownSince: number | undefined
    const since = () => Math.min(ownSince ?? Infinity, troubleSince ?? Infinity)
    const work = async () => {
      if (last) return last
      const begun = performance.now()
      const reply = await remote.post(
        { ...request, headers: { ...request.headers, 'Idempotency-Key': key } },
        signal,
      )
      if (reply.status !== undefined) hasAnswered = true
      if (reply.code === 'unauthorized') last = reply
      if (reply.passing === undefined && !reply.isAbsent) {
        troubleSince = undefined
        return reply
      }
      // A server that was silent has been so from the beginning.
      const since = reply.isSilent ? begun : performance.now()
      const isAgain = performance.now() - since < retryMaxTime
      if (troubleSince === undefined && isAgain && passingOf(reply)) listener.trouble?.(reply.message ?? '')
      troubleSince ??= since
      ownSince ??= since
      throw new Trouble(reply)
    }
    const passingOf = ({ passing, isAbsent }: RequestOutcome): Passing | false =>
      isAbsent && !hasAnswered ? wait && { retryAfterS: undefined } : (passing ?? false)
    const policy = {
      attempts: Infinity,
      passing: (error: unknown) => error instanceof Trouble && passingOf(error.reply),
      leftMs: () => retryMaxTime - (performance.now() - since()),
    }
    try {
      return await retry(work, policy, signal)
    } catch (error) {
      if (signal.aborted) return { outcomes: [], message: interruption('').error ?? '', code: 'interrupted' }
      if (!(error instanceof Trouble)) throw error
      // Of a server that answers others it is the request that is refused.
      if (error.reply.code === 'unreachable' && troubleSince !== undefined) last = error.reply
      return error.reply
    }
  }
}
