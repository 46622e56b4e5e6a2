import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Command } from 'commander'
import type { LoadedConfig } from '../config/load.ts'
import { createHttpClient, type HttpClient, type HttpReply } from '../http/client.ts'
import { deliver } from '../uploader/delivery/deliver.ts'
import { chooseDestination, type Destination, idOf, splitId } from '../uploader/delivery/destinations.ts'
import { toObject } from '../uploader/delivery/place.ts'
import type { Uploader } from '../uploader/index.ts'
import { configOption, endWith } from './command.ts'
import { openForCommand } from './open.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

const TIMEOUT_MS = 60_000
const MOST_REDIRECTS = 5

/** The smallest PNG there is: one transparent pixel. Some hosts take pictures only. */
const PROBE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

export function register(program: Command, terminal: Terminal): void {
  program
    .command('check')
    .description('try every destination: store, fetch back, compare, remove')
    .argument('[destination]', '"provider" or "provider/configName"; default: all of them')
    .addOption(configOption())
    .addHelpText(
      'after',
      `
Examples:
  upload-server check                        every destination
  upload-server check s3/blog                one of them`,
    )
    .action((id: string | undefined, options: CommonOptions) =>
      endWith(terminal, check(id, options, terminal)),
    )
}

/** `upload-server check [DEST]`: stores a picture at each destination, fetches it back, compares and removes it. */
export async function check(
  id: string | undefined,
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const notes: string[] = []
  const { config, mask, uploader } = await openForCommand(options, terminal, note => notes.push(note))
  try {
    let failures = 0
    for (const destination of select(uploader.destinations, id, config)) {
      notes.length = 0 // those of opening are told by the server
      try {
        const done = await tryOut(destination, uploader, hintFor(destination, config))
        terminal.print(oneLine(`ok      ${idOf(destination)}: ${done}${describeProxies(destination)}`))
      } catch (error) {
        failures++
        terminal.print(oneLine(`FAILED  ${idOf(destination)}: ${mask((error as Error).message)}`))
      }
      for (const note of notes) terminal.print(oneLine(`note    ${mask(note)}`))
    }
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}

function select(
  all: readonly Destination[],
  id: string | undefined,
  { settings, leftOut }: LoadedConfig,
): readonly Destination[] {
  if (id === undefined) return all
  const { type, name } = splitId(id)
  return [chooseDestination(all, settings.default, { picbed: type, configName: name }, undefined, leftOut)]
}

function describeProxies({ outgoing }: Destination): string {
  const used = [...(outgoing?.used ?? [])]
  return used.length === 0 ? '' : `, through the proxy ${used.join(' and ')}`
}

/** What may be wrong when a file is stored and nobody can read it. */
function hintFor(destination: Destination, { destinations }: LoadedConfig): string {
  const { provider } = destinations.find(one => idOf(one) === idOf(destination)) ?? {}
  return Object.hasOwn(provider?.config.shape ?? {}, 'urlPrefix')
    ? 'Is urlPrefix right, and may everybody read there?'
    : 'May everybody read there?'
}

/** Under a key as uploads get it: permissions may hold for one folder only. @returns what was done, in words */
async function tryOut(destination: Destination, uploader: Uploader, hint: string): Promise<string> {
  const { target } = destination
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  await target.check?.(signal)
  const spool = uploader.spoolFor(destination)
  const name = `upload-server-check-${randomUUID()}.png`
  const payload = await uploader.payloads.read(Readable.from([PROBE]), { name, spool, limit: PROBE.length })
  const key = await destination.keyTemplate(payload, new Date())
  const limits = { timeoutMs: TIMEOUT_MS, retries: 1 }
  const { url } = await deliver(destination, toObject(payload, key), limits, signal)
  const publicUrl = destination.rewriteUrl(url)
  try {
    const back = await fetchBack(destination, key, publicUrl, signal, hint)
    if (!back.equals(PROBE)) throw new Error(`what comes back from ${publicUrl} is not what was stored`)
  } finally {
    await target.remove?.(key, signal)
  }
  return target.remove
    ? 'stored, fetched back, removed'
    : `stored and fetched back; it can't be removed from here: ${publicUrl}`
}

/** By the public address; what this server would hand out itself is read where it lies, since no server need be running. */
async function fetchBack(
  { target, name, outgoing }: Destination,
  key: string,
  url: string,
  signal: AbortSignal,
  hint: string,
): Promise<Buffer> {
  const file = await target.locate?.(key)
  if (file !== undefined) return file.handle.readFile().finally(() => file.close())
  const client = createHttpClient({ insecureTls: false }, { name, outgoing, warn: () => {} })
  try {
    const { status, bytes } = await follow(client, url, signal).catch((error: Error) => {
      throw new Error(`it was stored, but ${url} can't be fetched from here: ${error.message} ${hint}`)
    })
    if (status < 200 || status > 299) throw new Error(`it was stored, but ${url} answers ${status}. ${hint}`)
    return bytes
  } finally {
    client.close()
  }
}

/** GET, with what it redirects to. */
async function follow(client: HttpClient, first: string, signal: AbortSignal): Promise<HttpReply> {
  let url = new URL(first)
  for (let redirects = 0; ; redirects++) {
    const reply = await client.send(
      { method: 'GET', url, accept: () => true, maxReplyBytes: PROBE.length },
      signal,
    )
    const { location } = reply.headers
    if (reply.status < 300 || reply.status > 399 || location === undefined) return reply
    if (redirects === MOST_REDIRECTS) throw new Error('it redirects without end.')
    url = new URL(location, url)
  }
}
