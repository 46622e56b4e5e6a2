import { UploadError } from '../errors.ts'
import type { Picture, Stored } from '../notes/move-pictures.ts'
import type { Payload } from '../payload/index.ts'
import type { Caller, Input } from '../uploader/input.ts'
import { findEntries } from './entries.ts'
import { openForCommand } from './open.ts'
import { finishFor } from './repeat.ts'
import type { Result } from './result.ts'
import { sendToServer } from './send.ts'
import { storeInputs } from './store-inputs.ts'
import { type CommonOptions, INTERRUPTION, oneLine, type Terminal } from './terminal.ts'
import { isDead, SELF } from './upload-here.ts'

export interface DeskOptions extends CommonOptions {
  /** Hosts whose pictures are moved. */
  from: string[]
  picbed?: string
  configName?: string
  /** Address of a running server to send through. */
  server?: string
  key?: string
}

/** Where the pictures of notes are handed in. */
export interface Desk {
  /** An answer for each, in order. */
  store(pictures: readonly Picture[]): Promise<readonly Stored[]>
  /** What is to be said at the end. */
  readonly remarks: ReadonlySet<string>
  /** Whether something that follows an upload has failed. */
  readonly isUnfinished: boolean
  close(): Promise<void>
}

/** Uploads without a server. */
export async function openDesk(options: DeskOptions, terminal: Terminal, signal: AbortSignal): Promise<Desk> {
  const opened = await openForCommand(options, terminal)
  const { uploader } = opened
  const { server } = opened.config.settings
  const remarks = new Set<string>()
  let isUnfinished = false
  let isFirst = true

  async function store(pictures: readonly Picture[]): Promise<readonly Stored[]> {
    const destination = uploader.choose(options, SELF)
    const inputs = pictures.map(toInput)
    const request = { destination, inputs, caller: MOVER, signal, accept: refuseOthers }
    const { results, pending } = await storeInputs(opened, request)
    if (pending) {
      isUnfinished = true
      remarks.add(oneLine(`Everything is stored, but not finished: ${pending.problem}`))
      remarks.add(`Finish without uploading again: ${finishFor([pending.id], options, terminal)}`)
    }
    checkIsElsewhere(results, options.from)
    if (
      isFirst &&
      (await isDead(
        results.flatMap(one => ('url' in one ? [one.url] : [])),
        server,
      ))
    )
      remarks.add(
        'The new links lead to this machine and work while its server runs. Start it with: upload-server',
      )
    isFirst = false
    return results
  }

  try {
    uploader.choose(options, SELF)
  } catch (error) {
    await uploader.close()
    throw error
  }
  return {
    store,
    remarks,
    get isUnfinished() {
      return isUnfinished
    },
    close: () => uploader.close(),
  }
}

/** Somebody else may have written the notes: their addresses reach nothing that clouds keep for their own machines. */
const MOVER: Caller = { ...SELF, addresses: 'private' }

function toInput(picture: Picture): Input {
  return typeof picture === 'string'
    ? { kind: 'path', origin: picture, path: picture }
    : { kind: 'url', origin: picture.href, url: picture }
}

/** What is read again must still be a picture, and an address may answer with a page that says what is wrong. */
function refuseOthers({ contentType }: Payload): void {
  if (!contentType.startsWith('image/'))
    throw new UploadError('source_failed', `it is no picture but ${contentType}`)
}

/** Links that lead to where the pictures were taken from would be moved again by each run. */
function checkIsElsewhere(results: readonly Stored[], from: readonly string[]): void {
  for (const result of results) {
    const { host = '', hostname = '' } = 'url' in result ? new URL(result.url) : {}
    if (from.includes(host) || from.includes(hostname))
      throw new Error(
        `The destination stores pictures on ${host} itself: choose another with --picbed and --config-name.`,
      )
  }
}

/** How `upload` sends, unless told otherwise. */
const SENDING = { concurrency: 4, timeout: 5 * 60_000 }

/** Sends through a running server, which has the destinations. */
export async function openRemoteDesk(
  options: DeskOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Desk> {
  const remarks = new Set<string>()

  async function store(pictures: readonly Picture[]): Promise<readonly Stored[]> {
    const entries = await findEntries(pictures.map(String), { isLiteral: true }, terminal)
    const results: Result[] = []
    const settle = (index: number, result: Result) => {
      results[index] = result
    }
    const sending = { ...options, ...SENDING, server: options.server ?? '' }
    await sendToServer(entries, sending, terminal, signal, { settle })
    const ids = [...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId))]
    if (ids.length > 0) remarks.add(`Finish without uploading again: ${finishFor(ids, options, terminal)}`)
    return pictures.map((_, index) => {
      const { url, error = INTERRUPTION } = results[index] ?? {}
      return url === undefined ? { error } : { url }
    })
  }

  return {
    store,
    remarks,
    get isUnfinished() {
      return remarks.size > 0
    },
    close: async () => {},
  }
}
