import { createHash, randomUUID } from 'node:crypto'
import { inMemory } from '../body.ts'
import { messageOf, UploadError } from '../errors.ts'
import { gather } from '../flow/gather.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { formBody } from '../http/form-body.ts'
import { oneLine } from '../safe-text.ts'
import { openConnection, type RequestOutcome, type ServerRequest, warnOfPlainHttp } from './api/connection.ts'
import { openPart, type Part } from './api/part.ts'
import { createRetries } from './api/retries.ts'
import { runIdOf } from './ci-run.ts'
import type { Context } from './context.ts'
import type { Entry } from './entries.ts'
import { type Numbered, readLinks, settleKnown, toQuestion } from './known-files.ts'
import { interruption, type Result } from './result.ts'
import type { Credentials } from './tokens/tokens.ts'
import { CLIENT_DEFAULTS, type SoughtFile, type UploadEvents, type Uploaded } from './uploads.ts'

/** Options of `createClient`. */
export interface ClientOptions extends Credentials {
  /** URL of the server, with or without `/upload`. A user name and password in it are for a reverse proxy (Basic). */
  readonly server: string
  /** How long transient failures are retried, milliseconds. 0: they are not retried. Default: 5 minutes. */
  readonly retryFor?: number
  /** Maximum number of parallel requests. Default: 4. */
  readonly concurrency?: number
  /** Whether to wait for a server that has not started yet, for at most `retryFor`. Default: false. */
  readonly wait?: boolean
  /** Part of each Idempotency-Key: within 24 hours, a job stores no file twice. Default: the CI run, otherwise a random ID. */
  readonly job?: string | undefined
}

/** Where the files of one call are stored. */
export interface ClientUpload extends UploadEvents {
  /** `provider` or `provider/configName`. Default: the default destination of the server. */
  readonly destination?: string | undefined
  /** The spelling of PicGo and PicList for the two parts of `destination`. */
  readonly picbed?: string | undefined
  readonly configName?: string | undefined
  /** Folder at the destination, for entries without their own. */
  readonly path?: string | undefined
  /** When the files expire, such as `12h`, `14d`, `never`, or an RFC 3339 timestamp. */
  readonly expires?: string | undefined
}

/** A client of one running server. */
export interface Client {
  /**
   * Uploads entries with parallel requests. Yields each result when it is known, in any order. A file that can't be stored is a
   * result with `error`, not an exception. Entries without a result were interrupted.
   */
  upload(
    entries: readonly Entry[],
    options: ClientUpload,
    signal: AbortSignal,
  ): AsyncGenerator<Uploaded, void>
  /**
   * Finds what this client has stored there: up to 1,000 files with these hashes, or the latest lists of images with these
   * names, which end with `REVIEW_SUFFIX`.
   *
   * @returns a link for each, in order; undefined if there is none
   * @throws Error if the server can't be asked
   */
  find(
    files: readonly SoughtFile[],
    options: Pick<ClientUpload, 'destination' | 'picbed' | 'configName' | 'expires'>,
    signal: AbortSignal,
  ): Promise<readonly (string | undefined)[]>
  /**
   * Completes an upload whose post-upload steps failed.
   *
   * @returns the URLs of its files
   * @throws Error
   */
  finalize(id: string, signal: AbortSignal): Promise<readonly string[]>
  /** Closes the connections. */
  close(): void
}

/** For a server that has stored files and returns their links only after the post-upload steps. */
const UNFINISHED = 'the file is stored, but its post-upload steps are pending'

/** Small files share a request, because a request takes longer than their bytes. The limits are bytes, files, and bytes. */
const SMALL_BYTES = 64 * 1024
const TOGETHER = 16
const TOGETHER_BYTES = 512 * 1024

/** Creates the client of a running server. The only place that sends requests to one. */
export function createClient(options: ClientOptions, context: Context): Client {
  const { server, retryFor, concurrency } = { ...CLIENT_DEFAULTS, ...options }
  warnOfPlainHttp(server, options, context)
  // A short time for retries also shortens the time for one token.
  const tokenMs = retryFor === 0 ? TOKEN_MS : Math.min(TOKEN_MS, Math.max(retryFor, SHORTEST_TOKEN_MS))
  const connection = openConnection(server, options, context, { tokenMs })
  const job = options.job ?? runIdOf(context.env) ?? randomUUID()

  const retriesFor = (onNotice?: UploadEvents['onNotice']) =>
    createRetries(connection, { retryFor, wait: options.wait ?? false, onNotice })

  async function upload(
    entries: readonly Entry[],
    { path, onNotice, ...place }: ClientUpload,
    emit: (uploaded: Uploaded) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const post = retriesFor(onNotice)
    const given = placeOf(place)
    const notes = new Set<string>()
    const settle = (index: number, result: Result) => emit({ ...result, index })

    async function sendBatch(batch: readonly Numbered[]): Promise<void> {
      const parts: (readonly [number, Part])[] = []
      for (const [index, entry] of batch) {
        try {
          parts.push([index, await openPart(entry, context, signal)])
        } catch (error) {
          settle(index, signal.aborted ? interruption(entry.name) : failureOf(entry, error))
        }
      }
      try {
        if (parts.length > 0) await sendParts(parts)
      } finally {
        for (const [, part] of parts) await part.close()
      }
    }

    async function sendParts(parts: readonly (readonly [number, Part])[]): Promise<void> {
      const folder = parts[0]?.[1].entry.folder ?? path
      const where = { ...given, path: folder }
      const what = parts.map(([, { entry, fileName, facts }]) => [fileName || entry.name, facts.sha256])
      const request = toRequest(
        parts.map(([, part]) => part),
        where,
      )
      let reply = await post(request, idempotencyKeyOf([job, where, what]), signal)
      // A CI job was run again after the default destination had been changed.
      if (reply.code === 'idempotency_key_reused') reply = await post(request, randomUUID(), signal)
      const { outcomes, message, code, finalizationId } = reply
      if (finalizationId !== undefined)
        notes.add(oneLine(context.mask(`${UNFINISHED}: ${message ?? ''}`.trim())))
      for (const [place, [index, part]] of parts.entries()) {
        const { name } = part.entry
        const outcome = outcomes[place]
        if (finalizationId !== undefined)
          settle(index, { name, ...part.facts, error: UNFINISHED, finalizationId })
        else if (outcome?.url !== undefined)
          settle(index, { name, url: outcome.url, ...merge(part, outcome) })
        else if (parts.length > 1 && mayGoAlone(reply)) await sendParts([[index, part]])
        else {
          const error = outcome?.error ?? message ?? 'the response has no link for this file'
          const reason = outcome?.code ?? code
          settle(index, { name, error: context.mask(error), ...(reason !== undefined && { code: reason }) })
        }
      }
    }

    const failureOf = ({ name }: Entry, error: unknown): Result => ({
      name,
      error: context.mask(messageOf(error)),
      code: error instanceof UploadError ? error.code : 'source_failed',
    })

    const numbered: readonly Numbered[] = [...entries.entries()]
    const known = await settleKnown(
      numbered,
      { connection, context, concurrency, query: given },
      settle,
      signal,
    )
    await mapConcurrently(
      batchesOf(numbered.filter(([index]) => !known.has(index))),
      concurrency,
      async batch => {
        if (!signal.aborted) await sendBatch(batch)
      },
    )
    for (const note of notes) context.note(note)
  }

  return {
    upload: (entries, options, signal) =>
      gather((emit, signal) => upload(entries, options, emit, signal), signal),
    async find(files, where, signal) {
      const reply = await retriesFor()(toQuestion(files, placeOf(where)), randomUUID(), signal)
      const links = readLinks(reply.text)
      if (links === undefined) throw new Error(context.mask(reply.message ?? 'the server is too old'))
      return links
    },
    async finalize(id, signal) {
      // The number of files is not known here. Each of them has a link.
      const reply = await connection.post({ query: { finalizationId: id }, count: Infinity }, signal)
      const urls = reply.outcomes.flatMap(({ url = [] }) => url)
      if (reply.status !== 200 || urls.length === 0)
        throw new Error(reply.message ?? 'the response has no link')
      return urls
    },
    close: connection.close,
  }
}

/** The destination in the spelling that every server understands, and the expiry. */
function placeOf({ destination = '', picbed, configName, expires }: ClientUpload) {
  const [, provider, name] = /^([^/]*)\/?(.*)$/s.exec(destination) ?? []
  return { picbed: picbed ?? provider, configName: configName ?? name, expires }
}

const TOKEN_MS = 30_000
const SHORTEST_TOKEN_MS = 2000

/** Whether what was refused together may be taken one by one. The response to a request that stored something is kept under its key. */
function mayGoAlone({ status, code, isUnclear }: RequestOutcome): boolean {
  return (
    status !== undefined &&
    !isUnclear &&
    !['unauthorized', 'no_token', 'unreachable', 'interrupted'].includes(code ?? '')
  )
}

/** The server's facts about a stored file, and those known here about the same bytes. */
function merge(
  { facts }: Part,
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
function batchesOf(entries: readonly Numbered[]): Numbered[][] {
  const batches: Numbered[][] = []
  let room = 0
  for (const numbered of entries) {
    const [, { kind, size, folder }] = numbered
    const last = batches.at(-1)
    const isSmall = (kind === 'file' || kind === 'bytes') && size <= SMALL_BYTES
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

function toRequest(parts: readonly Part[], query: NonNullable<ServerRequest['query']>): ServerRequest {
  const files = parts.flatMap(({ fileName, content }) =>
    content ? { field: 'file', fileName, content } : [],
  )
  const list = Buffer.from(JSON.stringify({ list: parts.map(({ entry }) => entry.name) }))
  const body = files.length > 0 ? formBody([], files) : { ...inMemory(list), contentType: 'application/json' }
  return { query, count: parts.length, body }
}

const idempotencyKeyOf = (what: unknown) => createHash('sha256').update(JSON.stringify(what)).digest('hex')
