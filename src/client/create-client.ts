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
import { readLinks, settleKnown, toQuestion } from './known-files.ts'
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
   * @throws Error with the message of the server
   */
  finalize(id: string, signal?: AbortSignal): Promise<readonly string[]>
  /** Closes the connections. Without it, idle ones keep the process alive for up to 5 minutes. */
  close(): void
}

/** For a server that has stored files and returns their links only after the post-upload steps. */
const UNFINISHED = 'the file is stored, but its post-upload steps are pending'

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
    const query = placeOf(place)
    const notes = new Set<string>()

    async function send(part: Part): Promise<Result> {
      const { entry, fileName, facts } = part
      const where = { ...query, path: entry.folder ?? path }
      const request = toRequest(part, where)
      const what = JSON.stringify([job, where, fileName || entry.name, facts.sha256])
      let reply = await post(request, createHash('sha256').update(what).digest('hex'), signal)
      // A CI job was run again after the default destination had been changed.
      if (reply.code === 'idempotency_key_reused') reply = await post(request, randomUUID(), signal)
      const { files, message = 'the response has no link for this file', code, finalizationId } = reply
      const { name } = entry
      if (finalizationId !== undefined) {
        notes.add(oneLine(context.mask(`${UNFINISHED}: ${message}`)))
        return { name, ...facts, error: UNFINISHED, finalizationId }
      }
      const [stored, ...others] = files
      if (stored && others.length === 0) return { name, ...merge(facts, stored) }
      const error = stored ? `the response has ${files.length} links for one file` : message
      return { name, error: context.mask(error), ...(code !== undefined && { code }) }
    }

    async function sendEntry(entry: Entry): Promise<Result> {
      let part: Part
      try {
        part = await openPart(entry, context, signal)
      } catch (error) {
        if (signal.aborted) return interruption(entry.name)
        const code = error instanceof UploadError ? error.code : 'source_failed'
        return { name: entry.name, error: context.mask(messageOf(error)), code }
      }
      return send(part).finally(part.close)
    }

    const settle = (index: number, result: Result) => emit({ ...result, index })
    const known = await settleKnown(entries, { post, context, concurrency, query }, settle, signal)
    await mapConcurrently(entries, concurrency, async (entry, index) => {
      if (!signal.aborted && !known.has(index)) settle(index, await sendEntry(entry))
    })
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
    async finalize(id, signal = new AbortController().signal) {
      const reply = await connection.post({ query: { finalizationId: id } }, signal)
      const urls = reply.files.map(({ url }) => url)
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

/** The server's facts about a stored file, and those known here about the same bytes. */
function merge(facts: Part['facts'], stored: RequestOutcome['files'][number]): Partial<Result> {
  const isSame = stored.sha256 === undefined || stored.sha256 === facts.sha256
  return { ...(isSame && facts), ...stored }
}

/** A file is sent in a form. A URL is sent in a list, for the server to fetch. */
function toRequest(
  { entry, fileName, content }: Part,
  query: NonNullable<ServerRequest['query']>,
): ServerRequest {
  if (content) return { query, body: formBody([], [{ field: 'file', fileName, content }]) }
  const list = inMemory(Buffer.from(JSON.stringify({ list: [entry.name] })))
  return { query, body: { ...list, contentType: 'application/json' } }
}
