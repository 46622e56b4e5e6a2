import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Entry, NOTHING_ON_STDIN } from '../client/entries.ts'
import { interruption, type Result } from '../client/result.ts'
import type { Uploaded, Uploads } from '../client/uploads.ts'
import { UploadError } from '../errors.ts'
import { gather } from '../flow/gather.ts'
import { readDimensions } from '../payload/dimensions.ts'
import { findImageFault } from '../payload/extensions.ts'
import { explainUnreachableLinks, findBase, findRunning, placeIn } from '../server/running-server.ts'
import { assertTakesPath, chooseDestination, type Destination, idOf } from '../uploader/destinations.ts'
import { assertMayExpire, readExpires } from '../uploader/expiry.ts'
import { FinalizationPending } from '../uploader/finalize.ts'
import { type Caller, type Input, type Outcome, SOURCES } from '../uploader/input.ts'
import { findKnownFiles } from '../uploader/known.ts'
import { discard, type UploadRequest } from '../uploader/request.ts'
import { upload } from '../uploader/upload.ts'
import { UsageError } from './define.ts'
import type { Opened } from './open.ts'
import { sayUnfinished } from './repeat.ts'
import type { Terminal } from './terminal.ts'

/** Where files are stored, and for how long. */
export interface Place {
  readonly picbed?: string | undefined
  readonly configName?: string | undefined
  /** When the files expire. */
  readonly expires?: string
}

/** Restrictions of an upload on behalf of others, such as an agent. Default: the rights of the user. */
export interface UploadRights extends Partial<Pick<UploadRequest, 'accept'>> {
  readonly caller?: Partial<Caller>
}

type Numbered = readonly [index: number, entry: Entry]

/** Files of one upload. All of them are read before the first one is stored. */
const MOST_FILES = 100

/**
 * Uploads in this process. This connects the client with the uploader of the server.
 *
 * @throws UploadError if the destination does not exist, or does not support --expires
 */
export function createUploadsHere(
  { picbed, configName, expires: typed }: Place,
  opened: Opened,
  terminal: Terminal,
  who: UploadRights,
): Uploads {
  const { config, uploader } = opened
  const { mask } = terminal
  const caller = { ...COMMAND_LINE_USER, ...who.caller }
  const destination = chooseDestination(uploader, { picbed, configName }, caller.destinations)
  const expires = typed === undefined ? undefined : readExpires(typed, '--expires')
  if (expires !== undefined) assertMayExpire(expires, destination, Date.now())
  const urls: string[] = []

  async function sendTo(
    path: string | undefined,
    numbered: readonly Numbered[],
    emit: (uploaded: Uploaded) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const inputs: Input[] = []
    const sent: Numbered[] = []
    for (const [index, entry] of numbered) {
      const made = await toInput(entry, destination, opened, terminal.stdin, signal)
      if (!('kind' in made)) emit({ ...made, index })
      else {
        inputs.push(made)
        sent.push([index, entry])
      }
    }
    if (inputs.length === 0 || signal.aborted) return
    const results: Promise<Uploaded>[] = []
    // A link is reported when the history has it. Otherwise the file could not be removed.
    const emitAll = async (pending: Partial<Result> = {}) => {
      for (const one of await Promise.all(results)) emit(one.url === undefined ? one : { ...one, ...pending })
    }
    try {
      const request: UploadRequest = {
        ...{ destination, inputs, caller, signal, requestId: randomUUID(), abortsSending: true },
        options: { path, expires },
        baseUrl: await findBase(config, destination),
        onOutcome(outcome) {
          const [index, entry] = sent[outcome.index] as Numbered
          if (outcome.ok) urls.push(outcome.url)
          results.push(toResult(entry, outcome, mask).then(result => ({ ...result, index })))
        },
        ...(who.accept && { accept: who.accept }),
      }
      await upload(request, uploader)
      await emitAll()
    } catch (error) {
      if (!(error instanceof FinalizationPending)) {
        if (!signal.aborted) throw error
        return emitAll()
      }
      const { finalizationId, problem } = error
      await emitAll({ error: sayUnfinished(mask(problem)), finalizationId })
      // Without an outcome, the history could not be saved. The same files can be uploaded again.
      for (const [index, { name }] of results.length > 0 ? [] : sent)
        emit({ index, name, error: mask(problem), code: 'database_unavailable' })
    } finally {
      await discard(inputs)
    }
  }

  return {
    upload: (entries, outer) =>
      gather(async (emit, signal) => {
        await assertOpensElsewhere(destination, config, terminal.env)
        if (entries.some(({ folder }) => folder !== undefined)) assertTakesPath(destination)
        for (const folder of new Set(entries.map(one => one.folder))) {
          const numbered = [...entries.entries()].filter(([, one]) => one.folder === folder)
          for (let start = 0; start < numbered.length; start += MOST_FILES)
            await sendTo(folder, numbered.slice(start, start + MOST_FILES), emit, signal)
        }
      }, outer),
    async find(files, signal) {
      const baseUrl = await findBase(config, destination)
      const request = { destination, caller, baseUrl, signal, requestId: randomUUID() }
      return findKnownFiles({ ...request, files, options: { expires } }, uploader)
    },
    explainUnreachable: async () =>
      explainUnreachableLinks(urls, await findBase(config, destination), config, destination),
  }
}

/** The ID of the destination that is used when none is named. Undefined if there are several and no setting `default`. */
export function findDefault({ uploader }: Opened): string | undefined {
  try {
    return chooseDestination(uploader).id
  } catch {
    return undefined
  }
}

/**
 * In CI, the machine is gone before anybody opens a link to it.
 *
 * @throws UsageError
 */
async function assertOpensElsewhere(
  destination: Destination,
  config: Opened['config'],
  { CI, JENKINS_URL }: Terminal['env'],
): Promise<void> {
  const isCi = (CI && CI !== 'false') || JENKINS_URL
  if (!isCi || config.settings.server.publicUrl !== undefined) return
  const { options = {} } = config.destinations.find(one => idOf(one) === destination.id) ?? {}
  const isServed = options['serve'] === true && options['urlPrefix'] === undefined
  if (!isServed || (await findRunning(config, placeIn(destination))) !== undefined) return
  throw new UsageError(
    `The files would stay on this CI machine, and their links would lead nowhere: ${destination.id} is a folder that no running server serves. Set --server to the URL of your upload server, or --config to a configuration with another destination.`,
  )
}

/** @returns what the uploader takes, or the result of an entry that can't be read */
async function toInput(
  { kind, name, path, fileName, open, bytes, fault, code = 'source_failed' }: Entry,
  destination: Destination,
  { config, uploader }: Opened,
  stdin: Terminal['stdin'],
  signal: AbortSignal,
): Promise<Input | Result> {
  if (fault !== undefined) return { name, error: fault, code }
  if (kind === 'clipboard') return { kind, origin: 'clipboard' }
  if (kind === 'url') return { kind, origin: name, url: new URL(name) }
  if (kind === 'file')
    return { kind: 'path', origin: name, path, open, ...(fileName !== undefined && { name: fileName }) }
  const spool = destination.spool ?? uploader.spool
  const reading = { name: fileName ?? '', spool, limit: config.settings.limits.fileSize }
  try {
    const payload = await uploader.payloads.read(bytes ? Readable.from([bytes]) : stdin, reading)
    if (payload.size === 0 && !bytes) return { name, error: NOTHING_ON_STDIN, code }
    return { kind: 'form', origin: name, payload }
  } catch (error) {
    if (signal.aborted) return interruption(name)
    if (!(error instanceof UploadError)) throw error
    return { kind: 'form', origin: name, payload: { error, sha256: undefined } }
  }
}

async function toResult(
  { name, size: sizeHere, open }: Entry,
  outcome: Outcome,
  mask: Terminal['mask'],
): Promise<Result> {
  if (!outcome.ok) return { name, error: mask(outcome.error.message), code: outcome.error.code }
  const { url, key, size, sha256, contentType, expiresAt } = outcome
  const warning = findImageFault(key.slice(key.lastIndexOf('/') + 1), outcome)
  const isAsHere = size === sizeHere && contentType.startsWith('image/')
  return {
    ...{ name, url, size, sha256, contentType },
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    ...(warning !== undefined && { warning }),
    ...(isAsHere && open && (await lookAt(open))),
  }
}

/** How far the header of an image may reach, bytes. */
const HEAD_BYTES = 256 * 1024

async function lookAt(open: NonNullable<Entry['open']>) {
  const file = await open().catch(() => undefined) // It may have been deleted after the upload.
  try {
    const head = await file?.handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return head && readDimensions(head.buffer.subarray(0, head.bytesRead))
  } finally {
    await file?.close()
  }
}

/** The user of the command line may upload every file that they can read. */
const COMMAND_LINE_USER: Caller = {
  name: 'command line',
  admittedBy: 'loopback',
  sources: new Set(SOURCES),
  roots: undefined,
  addresses: 'any',
  destinations: undefined,
}
