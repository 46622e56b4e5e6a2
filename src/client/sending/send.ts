import { createHash, randomUUID } from 'node:crypto'
import { messageOf, UploadError } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { retry, type Transience } from '../../flow/retry.ts'
import { bodyOf, makeMultipartBody } from '../../http/request-body.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import type { Entry } from '../entries.ts'
import { interruption, type Result } from '../result.ts'
import { warnOfPlainHttp } from './plain-http.ts'
import { type Prepared, prepare } from './prepare.ts'
import { openRemote, type Remote, type RemoteRequest, type RequestOutcome } from './remote.ts'
import type { Listener, Sender } from './sender.ts'
import { PATIENCE, type Patience } from './while-responsive.ts'

/** For a server that has stored files and returns their links only after the post-upload steps. */
const UNFINISHED = 'the file is stored, but its post-upload steps are pending'

export interface SendOptions {
  /** URL of the server, with or without `/upload`. */
  server: string
  key?: string
  /** Value of `--token-from`. */
  tokenFrom?: string
  picbed?: string | undefined
  configName?: string | undefined
  /** When the files expire. */
  expires?: string
  /** Maximum number of parallel requests. */
  concurrency: number
  /** How long transient failures are retried, milliseconds. 0: they are not retried. */
  retryMaxTime: number
  /** Whether to wait for a server that has not started yet. */
  wait?: boolean
  /** Part of each Idempotency-Key, so that the same job stores no file twice. Default: the CI run, otherwise a random ID. */
  job?: string
}

/** Small files share a request, because a request takes longer than their bytes. The limits are bytes, files, and bytes. */
const SMALL_BYTES = 64 * 1024
const TOGETHER = 16
const TOGETHER_BYTES = 512 * 1024

type Numbered = readonly [index: number, entry: Entry]

/** Uploads entries through a running server with parallel requests, and retries transient failures. */
export function createRemoteSender(options: SendOptions, context: Context): Sender {
  warnOfPlainHttp(options.server, options, context)
  return {
    send: (entries, signal, listener) => sendToServer(entries, options, context, signal, listener),
    explainUnreachable: async () => undefined,
  }
}

async function sendToServer(
  entries: readonly Entry[],
  options: SendOptions,
  context: Context,
  signal: AbortSignal,
  listener: Listener,
): Promise<void> {
  const remote = openRemote(options.server, options, context, patienceIn(options.retryMaxTime))
  const sendWithRetries = createRetries(remote, options, listener)
  const job = options.job ?? jobOf(context.env) ?? randomUUID()
  const { picbed, configName, expires } = options
  const notes = new Set<string>()

  const fail = ([index, { name }]: Numbered, error: string, code?: string) =>
    listener.settle(index, { name, error: context.mask(error), ...(code !== undefined && { code }) })

  async function sendBatch(batch: readonly Numbered[]): Promise<void> {
    const parts: (readonly [Numbered, Prepared])[] = []
    for (const one of batch) {
      try {
        parts.push([one, await prepare(one[1], context, signal)])
      } catch (error) {
        if (signal.aborted) listener.settle(one[0], interruption(one[1].name))
        else fail(one, messageOf(error), error instanceof UploadError ? error.code : 'source_failed')
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
    const key = idempotencyKeyOf([
      job,
      where,
      parts.map(([, { entry, fileName, facts }]) => [fileName || entry.name, facts.sha256]),
    ])
    const request = toRequest(
      parts.map(([, part]) => part),
      where,
    )
    let reply = await sendWithRetries(request, key, signal)
    // A CI job was run again after the default destination had been changed.
    if (reply.code === 'idempotency_key_reused') reply = await sendWithRetries(request, randomUUID(), signal)
    const { outcomes, message, code, finalizationId } = reply
    if (finalizationId !== undefined)
      notes.add(oneLine(context.mask(`${UNFINISHED}: ${message ?? ''}`.trim())))
    for (const [place, [numbered, part]] of parts.entries()) {
      const [index, { name }] = numbered
      const outcome = outcomes[place]
      if (finalizationId !== undefined)
        listener.settle(index, { name, ...part.facts, error: UNFINISHED, finalizationId })
      else if (outcome?.url !== undefined)
        listener.settle(index, { name, url: outcome.url, ...merge(part, outcome) })
      else if (parts.length > 1 && mayGoAlone(reply)) await sendParts([[numbered, part]])
      else
        fail(
          numbered,
          outcome?.error ?? message ?? 'the response has no link for this file',
          outcome?.code ?? code,
        )
    }
  }

  await mapConcurrently(batchesOf(entries), options.concurrency, async batch => {
    if (!signal.aborted) await sendBatch(batch)
    else for (const [index, { name }] of batch) listener.settle(index, interruption(name))
  })
  for (const note of notes) context.note(note)
}

/** A short time for retries also shortens the time that the client waits for each response. */
function patienceIn(retryMaxTime: number): Patience {
  if (retryMaxTime === 0) return PATIENCE // Nothing is retried, but each response is awaited.
  const within = (ms: number) => Math.min(ms, Math.max(retryMaxTime, LEAST_PATIENCE_MS))
  const { quietMs, answerMs, tokenMs } = PATIENCE
  return {
    ...PATIENCE,
    quietMs: within(quietMs),
    answerMs: within(answerMs),
    tokenMs: within(tokenMs),
  }
}

const LEAST_PATIENCE_MS = 2000

/** Whether what was refused together may be taken one by one. The answer to a request that stored something is kept by its key. */
function mayGoAlone({ status, code, isUnclear }: RequestOutcome): boolean {
  return (
    status !== undefined &&
    !isUnclear &&
    !['unauthorized', 'no_token', 'unreachable', 'interrupted'].includes(code ?? '')
  )
}

/** What the server says of it, and what is known here of the same bytes. */
function merge(
  { facts }: Prepared,
  { size, sha256, contentType, expiresAt, warning }: RequestOutcome['outcomes'][number],
): Partial<Result> {
  const isSame = sha256 === undefined || sha256 === facts.sha256
  return {
    ...(isSame && facts),
    ...(size !== undefined && { size }),
    ...(sha256 && { sha256 }),
    ...(expiresAt && { expiresAt }),
    ...(contentType && { contentType }),
    ...(warning && { warning }),
  }
}

/** Groups small files that follow each other and have the same folder into one request. Every other entry is one request. */
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

const idempotencyKeyOf = (what: unknown) => createHash('sha256').update(JSON.stringify(what)).digest('hex')

/** Variables that identify a CI run. Running the same job again keeps their values. */
const JOB_VARIABLES = [
  ['GITHUB_SERVER_URL', 'GITHUB_REPOSITORY', 'GITHUB_RUN_ID'], // Gitea's and Forgejo's runners set these, too.
  ['CI_PROJECT_URL', 'CI_PIPELINE_ID'],
  ['BUILDKITE_BUILD_ID'],
  ['CI_REPO_URL', 'CI_PIPELINE_NUMBER'],
  ['BUILD_URL'],
]

function jobOf(env: Context['env']): string | undefined {
  const names = JOB_VARIABLES.find(all => all.every(name => env[name]))
  return names && JSON.stringify(names.map(name => env[name]))
}

/** A failure that may be retried. */
class FailedRequest extends Error {
  readonly reply: RequestOutcome

  constructor(reply: RequestOutcome) {
    super(reply.message)
    this.reply = reply
  }
}

/**
 * Retries requests until they succeed, fail permanently, or the time is over. The time starts at the first failure of a
 * request, or at the first failure of any request since the last response: when the server is down, all requests share one
 * time limit.
 */
function createRetries(remote: Remote, { retryMaxTime, wait = false }: SendOptions, listener: Listener) {
  let failingSince: number | undefined
  let hasAnswered = false
  /** The outcome of all later requests, once it is clear that they would fail, too. */
  let final: RequestOutcome | undefined

  return async (request: RemoteRequest, key: string, signal: AbortSignal): Promise<RequestOutcome> => {
    let ownSince: number | undefined
    const since = () => Math.min(ownSince ?? Infinity, failingSince ?? Infinity)
    const work = async () => {
      if (final) return final
      const begun = performance.now()
      const reply = await remote.post(
        { ...request, headers: { ...request.headers, 'Idempotency-Key': key } },
        signal,
      )
      if (reply.status !== undefined) hasAnswered = true
      const isPermanent = reply.transient === undefined
      if (reply.code === 'unauthorized' || (reply.code === 'no_token' && isPermanent)) final = reply
      if (isPermanent && !reply.isAbsent) {
        failingSince = undefined
        return reply
      }
      // A server that sent nothing has been unresponsive since the request began.
      const since = reply.isSilent ? begun : performance.now()
      const isAgain = performance.now() - since < retryMaxTime
      if (failingSince === undefined && isAgain && transienceOf(reply))
        listener.retrying?.(reply.message ?? '')
      failingSince ??= since
      ownSince ??= since
      throw new FailedRequest(reply)
    }
    const transienceOf = ({ transient, isAbsent }: RequestOutcome): Transience | false =>
      isAbsent && !hasAnswered ? wait && { retryAfterS: undefined } : (transient ?? false)
    const policy = {
      attempts: Infinity,
      transient: (error: unknown) => error instanceof FailedRequest && transienceOf(error.reply),
      leftMs: () => retryMaxTime - (performance.now() - since()),
      isTriedAtEnd: true,
    }
    try {
      return await retry(work, policy, signal)
    } catch (error) {
      if (signal.aborted) return { outcomes: [], message: interruption('').error ?? '', code: 'interrupted' }
      if (!(error instanceof FailedRequest)) throw error
      // If the server responds to other requests, only this request is at fault.
      if (['unreachable', 'no_token'].includes(error.reply.code ?? '') && failingSince !== undefined)
        final = error.reply
      return error.reply
    }
  }
}
