import { randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { UploadError } from '../errors.ts'
import { readDimensions } from '../payload/dimensions.ts'
import { askWhoIsThere, urlOf } from '../server/port.ts'
import { assertTakesPath } from '../uploader/delivery/destinations.ts'
import { assertMayExpire } from '../uploader/delivery/expiry.ts'
import { readExpires } from '../uploader/expires.ts'
import type { Uploader } from '../uploader/index.ts'
import { type Caller, type Input, type Outcome, SOURCES } from '../uploader/input.ts'
import { FinalizationPending } from '../uploader/jobs/finalization-pending.ts'
import { type Entry, NOTHING_ON_STDIN } from './entries.ts'
import { openForCommand } from './open.ts'
import { interruption, type Result } from './result.ts'
import type { Listener } from './send.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

export interface HereOptions extends CommonOptions {
  picbed?: string
  configName?: string
  /** When the files may go. */
  expires?: string
}

type Numbered = readonly [index: number, entry: Entry]

/** What is to be said of an upload at its end. */
export interface Ending {
  /** The id that finishes what is stored but not finished, by the index of the entry. */
  readonly unfinished: ReadonlyMap<number, string>
  /** Whether links lead to a server that does not run. */
  readonly areDead: boolean
}

/** Uploads entries without a server. */
export async function uploadHere(
  entries: readonly Entry[],
  options: HereOptions,
  terminal: Terminal,
  signal: AbortSignal,
  listener: Listener,
): Promise<Ending> {
  const opened = await openForCommand(options, terminal)
  const { config, mask, uploader } = opened
  const unfinished = new Map<number, string>()
  const urls: string[] = []
  try {
    const destination = uploader.choose(options, SELF)
    if (entries.some(({ folder }) => folder !== undefined)) assertTakesPath(destination)
    const expires = options.expires === undefined ? undefined : readExpires(options.expires, '--expires')
    if (expires !== undefined) assertMayExpire(expires, destination, Date.now())

    async function uploadTo(path: string | undefined, numbered: readonly Numbered[]): Promise<void> {
      const inputs: Input[] = []
      const places: Numbered[] = []
      for (const one of numbered) {
        const [index, entry] = one
        const input = await toInput(entry, options, uploader, config, terminal, signal)
        if ('name' in input && 'error' in input) listener.settle(index, input)
        else {
          inputs.push(input as Input)
          places.push(one)
        }
      }
      const looks: Promise<void>[] = []
      const onOutcome = (outcome: Outcome) => {
        const [index, entry] = places[outcome.index] as Numbered
        if (outcome.ok) urls.push(outcome.url)
        looks.push(toResult(entry, outcome, mask).then(result => listener.settle(index, result)))
      }
      if (inputs.length === 0 || signal.aborted) return
      const request = {
        destination,
        inputs,
        caller: SELF,
        wishes: { path, expires },
        baseUrl: baseUrlOf(config.settings.server),
        signal,
        requestId: randomUUID(),
        onOutcome,
      }
      try {
        await uploader.upload(request)
      } catch (error) {
        if (error instanceof FinalizationPending) {
          terminal.note(oneLine(`Everything is stored, but not finished: ${mask(error.problem)}`))
          for (const [index] of places) unfinished.set(index, error.finalizationId)
        } else if (!signal.aborted) throw error
      } finally {
        await Promise.all(looks)
      }
    }

    const byFolder = new Map<string | undefined, Numbered[]>()
    for (const one of entries.entries()) {
      const { folder } = one[1]
      byFolder.set(folder, [...(byFolder.get(folder) ?? []), one])
    }
    for (const [folder, numbered] of byFolder) await uploadTo(folder, numbered)
    return { unfinished, areDead: terminal.isInteractive && (await isDead(urls, config.settings.server)) }
  } finally {
    await uploader.close()
  }
}

/** @returns the input, or what is wrong with it */
async function toInput(
  entry: Entry,
  options: HereOptions,
  uploader: Uploader,
  { settings }: LoadedConfig,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Input | Result> {
  const { kind, name, path, fileName, fault } = entry
  if (fault !== undefined) return { name, error: fault, code: 'source_failed' }
  if (kind === 'clipboard') return { kind, origin: 'clipboard' }
  if (kind === 'url') return { kind, origin: name, url: new URL(name) }
  if (kind === 'file')
    return { kind: 'path', origin: name, path, ...(fileName !== undefined && { name: fileName }) }
  const spool = uploader.spoolFor(uploader.choose(options, SELF))
  const reading = { name: fileName ?? '', spool, limit: settings.limits.fileSize }
  const payload = await uploader.payloads.read(terminal.stdin, reading).catch((error: unknown) => {
    if (signal.aborted) return undefined
    if (error instanceof UploadError) return { error, sha256: undefined }
    throw error
  })
  if (payload === undefined) return interruption(name)
  if (!('error' in payload) && payload.size === 0)
    return { name, error: NOTHING_ON_STDIN, code: 'source_failed' }
  return { kind: 'form', origin: '-', payload }
}

async function toResult(
  { name, path, size: sizeHere }: Entry,
  outcome: Outcome,
  mask: Terminal['mask'],
): Promise<Result> {
  if (!outcome.ok) return { name, error: mask(outcome.error.message), code: outcome.error.code }
  const { url, size, sha256, contentType: type } = outcome
  const isAsHere = path !== '' && size === sizeHere && type.startsWith('image/')
  return { name, url, size, sha256, type, ...(isAsHere && (await lookAt(path))) }
}

/** How far the header of a picture may reach, bytes. */
const HEAD_BYTES = 256 * 1024

async function lookAt(path: string) {
  const file = await open(path).catch(() => undefined) // it was there a moment ago
  try {
    const head = await file?.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return head && readDimensions(head.buffer.subarray(0, head.bytesRead))
  } finally {
    await file?.close()
  }
}

/** Whether links lead to the server of this configuration, and it does not run. */
export async function isDead(urls: readonly string[], server: Settings['server']): Promise<boolean> {
  if (server.publicUrl !== undefined) return false
  const base = baseUrlOf(server)
  return urls.some(url => url.startsWith(base)) && !(await askWhoIsThere(server)).isAlive
}

/** The person at the command line may read what the system lets them read. */
export const SELF: Caller = {
  name: 'command line',
  admittedBy: 'loopback',
  sources: new Set(SOURCES),
  roots: undefined,
  addresses: 'any',
  destinations: undefined,
}

/** Where links to what the server itself hands out begin. */
export function baseUrlOf(server: Settings['server']): string {
  const url = server.publicUrl ?? (isSocketPath(server.host) ? 'http://localhost' : urlOf(server))
  return url.endsWith('/') ? url : `${url}/`
}
