import { createHash, randomUUID } from 'node:crypto'
import { inOrder } from '../flow/in-order.ts'
import { type Passing, retry } from '../flow/retry.ts'
import type { Entry } from './entries.ts'
import { type Part, prepare } from './prepare.ts'
import { openRemote, type Remote, type RemoteRequest, type Reply } from './remote.ts'
import { interruption, type Result } from './result.ts'
import { oneLine, type Terminal } from './terminal.ts'

/** Of a server that has stored files and gives no links until it has finished. */
const UNFINISHED = 'it is stored, but not finished'

export interface SendOptions {
  /** Address of the server, with or without `/upload`. */
  server: string
  key?: string
  picbed?: string
  configName?: string
  /** When the files may go. */
  expires?: string
  /** Requests at once. */
  concurrency: number
  /** For how long what may pass is tried again, ms. */
  timeout: number
  /** Waits for a server that is not there yet. */
  wait?: boolean
  /** Part of the key of each request: the same job sends nothing twice. Default: the job of the CI host, else none. */
  job?: string
}

/** Files up to this size are sent together, up to so many and so many bytes in all: a request costs more than they do. */
const SMALL_BYTES = 64 * 1024
const TOGETHER = 16
const TOGETHER_BYTES = 512 * 1024

/** What hears of what goes on. */
export interface Listener {
  /** Called once for each entry, in whatever order. */
  settle(index: number, result: Result): void
  /** Something that may pass has begun. */
  trouble?(message: string): void
}

type Numbered = readonly [index: number, entry: Entry]

/** Sends entries through a running server, several requests at once, each until it is answered for good. */
export async function sendToServer(
  entries: readonly Entry[],
  options: SendOptions,
  terminal: Terminal,
  signal: AbortSignal,
  listener: Listener,
): Promise<void> {
  const persist = createPersistence(openRemote(options.server, options.key, terminal), options, listener)
  const job = options.job ?? jobOf(terminal.env) ?? randomUUID()
  const { picbed, configName, expires } = options
  const notes = new Set<string>()

  const fail = ([index, { name }]: Numbered, error: string, code?: string) =>
    listener.settle(index, { name, error: terminal.mask(error), ...(code !== undefined && { code }) })

  async function sendBatch(batch: readonly Numbered[]): Promise<void> {
    const parts: (readonly [Numbered, Part])[] = []
    for (const one of batch) {
      try {
        parts.push([one, await prepare(one[1], terminal)])
      } catch (error) {
        if (signal.aborted) listener.settle(one[0], interruption(one[1].name))
        else fail(one, (error as Error).message, 'source_failed')
      }
    }
    if (parts.length > 0) await sendParts(parts)
  }

  async function sendParts(parts: readonly (readonly [Numbered, Part])[]): Promise<void> {
    const { folder } = parts[0]?.[1].entry ?? {}
    const where = { picbed, configName, path: folder, expires }
    const key = keyOf([
      job,
      where,
      parts.map(([, { entry, fileName, facts }]) => [fileName || entry.name, facts.sha256]),
    ])
    const request = () =>
      toRequest(
        parts.map(([, part]) => part),
        where,
      )
    let reply = await persist(request, key, signal)
    // A job that is run again after the default destination was changed.
    if (reply.code === 'idempotency_key_reused') reply = await persist(request, randomUUID(), signal)
    const { outcomes, message, code, finalizationId } = reply
    if (finalizationId !== undefined)
      notes.add(oneLine(terminal.mask(`${UNFINISHED}: ${message ?? ''}`.trim())))
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

  await inOrder(batchesOf(entries), options.concurrency, async batch => {
    if (!signal.aborted) await sendBatch(batch)
    else for (const [index, { name }] of batch) listener.settle(index, interruption(name))
  })
  for (const note of notes) terminal.note(note)
}

/** Whether what was refused together may be taken one by one. The answer to a request that stored something is kept by its key. */
function mayGoAlone({ status, code, isUnclear }: Reply): boolean {
  return (
    status !== undefined && !isUnclear && !['unauthorized', 'unreachable', 'interrupted'].includes(code ?? '')
  )
}

/** What the server says of it, and what is known here of the same bytes. */
function merge({ facts }: Part, { size, sha256, type }: Reply['outcomes'][number]): Partial<Result> {
  const isSame = sha256 === undefined || sha256 === facts.sha256
  return {
    ...(isSame && facts),
    ...(size !== undefined && { size }),
    ...(sha256 && { sha256 }),
    ...(type && { type }),
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

function toRequest(parts: readonly Part[], query: NonNullable<RemoteRequest['query']>): RemoteRequest {
  const [{ blob, entry } = {}] = parts
  if (blob === undefined)
    return {
      query,
      count: 1,
      body: JSON.stringify({ list: [entry?.name] }),
      headers: { 'Content-Type': 'application/json' },
    }
  const body = new FormData()
  for (const part of parts) if (part.blob) body.append('file', part.blob, part.fileName)
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

function jobOf(env: Terminal['env']): string | undefined {
  const names = JOB_VARIABLES.find(all => all.every(name => env[name]))
  return names && JSON.stringify(names.map(name => env[name]))
}

class Trouble extends Error {
  readonly reply: Reply

  constructor(reply: Reply) {
    super(reply.message)
    this.reply = reply
  }
}

/**
 * Repeats requests until they are answered for good or the time is over. It counts from the first failure of a request, or
 * of any since the last answer: when the server is gone, everything waits together and gives up together.
 */
function createPersistence(remote: Remote, { timeout, wait = false }: SendOptions, listener: Listener) {
  let troubleSince: number | undefined
  let hasAnswered = false
  /** What nothing more is sent after. */
  let last: Reply | undefined

  return async (make: () => RemoteRequest, key: string, signal: AbortSignal): Promise<Reply> => {
    let ownSince: number | undefined
    const since = () => Math.min(ownSince ?? Infinity, troubleSince ?? Infinity)
    const work = async () => {
      if (last) return last
      const request = make()
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
      if (troubleSince === undefined && timeout > 0 && passingOf(reply))
        listener.trouble?.(reply.message ?? '')
      troubleSince ??= performance.now()
      ownSince ??= performance.now()
      throw new Trouble(reply)
    }
    const passingOf = ({ passing, isAbsent }: Reply): Passing | false =>
      isAbsent && !hasAnswered ? wait && { retryAfterS: undefined } : (passing ?? false)
    const policy = {
      attempts: Infinity,
      passing: (error: unknown) => error instanceof Trouble && passingOf(error.reply),
      leftMs: () => timeout - (performance.now() - since()),
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
