import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { LoadedConfig } from '../config/load.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import type { HttpClient, HttpReply } from '../http/client.ts'
import { createConnections } from '../http/connections.ts'
import type { Uploader } from '../uploader/app.ts'
import { type Destination, type DestinationSpec, idOf } from '../uploader/destinations.ts'
import { sendObject, toObject } from '../uploader/send.ts'
import { findBase } from './running-server.ts'

const TIMEOUT_MS = 60_000
const MOST_REDIRECTS = 5
/** Timeout for a link to this server, which may not be running yet. */
const OWN_LINK_MS = 3000

/** The smallest valid PNG: one transparent pixel. Some hosts accept only images. */
const PROBE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

/** What to check if a file was stored but can't be downloaded. */
function hintFor(destination: Destination, spec: DestinationSpec | undefined): string {
  if (destination.target.locate)
    return 'Check server.publicUrl, and that the server there uses this configuration.'
  return Object.hasOwn(spec?.provider.config.shape ?? {}, 'urlPrefix')
    ? 'Check urlPrefix, and that the file is publicly readable.'
    : 'Check that the file is publicly readable.'
}

/**
 * Stores an image at a destination, downloads it, compares it and removes it. Its object key is made as for uploads, because
 * permissions may apply to one folder only.
 *
 * @returns what was done, in words
 * @throws Error with a sentence, or what the provider throws
 */
export async function tryOut(
  destination: Destination,
  uploader: Uploader,
  config: LoadedConfig,
): Promise<string> {
  const { target } = destination
  const spec = config.destinations.find(one => idOf(one) === destination.id)
  const hint = hintFor(destination, spec)
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  await target.check?.(signal)
  const spool = destination.spool ?? uploader.spool
  const name = `upload-server-check-${randomUUID()}.png`
  const payload = await uploader.payloads.read(Readable.from([PROBE]), { name, spool, limit: PROBE.length })
  const key = await destination.keyTemplate(payload, new Date())
  const late = () => new Error(`there was no response within ${TIMEOUT_MS / 1000} s`)
  const limit = beginTimeLimit(TIMEOUT_MS, signal, late)
  const { url } = await sendObject(destination, toObject(payload, key), 1, limit).finally(limit.end)
  const { server } = config.settings
  const link = destination.rewriteUrl(new URL(url, await findBase(config, destination)).href)
  const isOwn = url.startsWith('files/')
  let how: string
  try {
    // Without server.publicUrl, it is not known to which server the link leads.
    if (isOwn && server.publicUrl === undefined) how = await readInFolder(destination, key)
    else how = await fetchBack(destination, spec, isOwn ? key : undefined, link, signal, hint)
  } finally {
    await target.remove?.(key, signal)
  }
  return target.remove
    ? `stored, ${how}, removed`
    : `stored and ${how}. It can't be removed automatically: ${link}`
}

/**
 * Downloads the file by its link. If the link of a file that this server serves can't be opened, the file is read in its
 * folder, because the server may not be running. A response without the file is an error: another server has sent it.
 *
 * @param key the object key of a file that this server serves
 * @returns what was done, in words
 */
async function fetchBack(
  destination: Destination,
  spec: DestinationSpec | undefined,
  key: string | undefined,
  link: string,
  signal: AbortSignal,
  hint: string,
): Promise<string> {
  const { http, close } = createConnections({ ...spec?.common, outgoing: destination.outgoing })
  const late = () => new Error('there was no response in time.')
  const limit = beginTimeLimit(key === undefined ? TIMEOUT_MS : OWN_LINK_MS, signal, late)
  try {
    const reply = await follow(http, link, limit.signal).catch((error: Error) =>
      limit.signal.aborted ? late() : error,
    )
    if (reply instanceof Error && key !== undefined)
      return `${await readInFolder(destination, key)} (its link was not opened: ${reply.message} ${hint})`
    if (reply instanceof Error)
      throw new Error(`the file was stored, but ${link} can't be downloaded: ${reply.message} ${hint}`)
    const { status, bytes } = reply
    if (status < 200 || status > 299)
      throw new Error(`the file was stored, but ${link} returned status ${status}. ${hint}`)
    if (!bytes.equals(PROBE))
      throw new Error(`the file was stored, but ${link} returned different content. ${hint}`)
    return 'downloaded'
  } finally {
    limit.end()
    close()
  }
}

async function readInFolder({ target }: Destination, key: string): Promise<string> {
  const file = await target.locate?.(key)
  const bytes = await file?.handle.readFile().finally(() => file.close())
  if (!bytes?.equals(PROBE)) throw new Error('the file in the folder differs from what was stored')
  return 'read in its folder'
}

/** Sends a GET request and follows redirects. */
async function follow(client: HttpClient, first: string, signal: AbortSignal): Promise<HttpReply> {
  let url = new URL(first)
  for (let redirects = 0; ; redirects++) {
    const reply = await client.send(
      { method: 'GET', url, accept: () => true, maxReplyBytes: PROBE.length },
      signal,
    )
    const { location } = reply.headers
    if (reply.status < 300 || reply.status > 399 || location === undefined) return reply
    if (redirects === MOST_REDIRECTS) throw new Error('there are too many redirects.')
    url = new URL(location, url)
  }
}
