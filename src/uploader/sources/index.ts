import { UploadError } from '../../errors.ts'
import type { OwnCheck } from '../../files/own-paths.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import type { Payload, Payloads } from '../../payload/index.ts'
import type { Spool } from '../../payload/spool.ts'
import type { Destination } from '../destinations.ts'
import type { Caller, Input, SourceKind } from '../input.ts'
import type { Source } from './source.ts'

/** Settings for opening inputs. */
export interface SourceSettings {
  /** Maximum size of a file, bytes. */
  readonly fileSize: number
  /** Time limit of a fetch. */
  readonly urlTimeoutMs: number
  /** Outbound proxies for fetches. Default: none. */
  readonly outgoing?: Outgoing
  /** Rejects files and directories of the server itself. */
  readonly isOwn: OwnCheck
  /** Environment of the clipboard tools. It specifies the display. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Turns one input into a payload.
 *
 * @throws UploadError `source_forbidden` if the client may not upload it, `source_failed` if it can't be read,
 *   `too_large`, `insufficient_storage`
 */
export async function obtain(input: Input, asker: Asker, deps: ObtainDeps): Promise<Payload> {
  if (input.kind !== 'form') return fetchInput(input, asker, deps)
  if (!asker.caller.sources.has('form')) throw notAdmitted('form', asker.caller)
  if ('error' in input.payload) throw input.payload.error
  return input.payload
}

interface Asker {
  readonly destination: Pick<Destination, 'spool'>
  readonly caller: Caller
  readonly signal: AbortSignal
}

interface ObtainDeps {
  readonly payloads: Payloads
  /** For destinations that have no spool. */
  readonly spool: Spool
  readonly sources: SourceSettings
}

type OtherInput = Exclude<Input, { kind: 'form' }>

async function fetchInput(
  input: OtherInput,
  { destination, caller, signal }: Asker,
  { payloads, spool, sources: settings }: ObtainDeps,
): Promise<Payload> {
  const most = Math.min(settings.fileSize, caller.fileSize ?? Infinity)
  const limited = most === settings.fileSize ? settings : { ...settings, fileSize: most }
  const { name, folders, body, check } = await openSource(input, caller, limited, signal)
  const payload = await payloads.read(readUntil(signal, body), {
    name,
    folders,
    spool: destination.spool ?? spool,
    limit: most,
  })
  try {
    check?.(payload)
    if (input.kind === 'clipboard' && !payload.contentType.startsWith('image/'))
      throw new UploadError('source_failed', 'The clipboard contains no image, and no path or URL of one.')
    return payload
  } catch (error) {
    await payload.dispose()
    throw error
  }
}

/** Stops if the client has disconnected. Reading begins even then, because only the reader closes the body. */
async function* readUntil(signal: AbortSignal, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    signal.throwIfAborted()
    yield chunk
  }
}

async function openSource(
  input: OtherInput,
  caller: Caller,
  settings: SourceSettings,
  signal: AbortSignal,
): Promise<Source> {
  // Data in the request itself counts as a form.
  const kind = input.kind === 'data' ? 'form' : input.kind
  if (!caller.sources.has(kind)) throw notAdmitted(kind, caller)
  switch (input.kind) {
    case 'data':
      return inMemory('', input.bytes)
    case 'path': {
      const { openPath } = await import('./path.ts')
      const { roots } = caller
      const { path, name, open } = input
      const source = await openPath(path, { roots, isOwn: settings.isOwn, open })
      return name === undefined ? source : { ...source, name }
    }
    case 'url': {
      const { openUrl } = await import('./url.ts')
      return openUrl(input.url, {
        addresses: caller.addresses,
        privateHosts: caller.privateHosts,
        timeoutMs: settings.urlTimeoutMs,
        maxBytes: settings.fileSize,
        outgoing: settings.outgoing,
        signal,
      })
    }
    case 'clipboard':
      return openClipboard(caller, settings, signal)
  }
}

async function openClipboard(caller: Caller, settings: SourceSettings, signal: AbortSignal): Promise<Source> {
  const { readClipboard } = await import('../../clipboard/index.ts')
  const content = await readClipboard({ env: settings.env, maxBytes: settings.fileSize, signal })
  if (content.kind === 'image') return inMemory(content.name, content.body)
  // A path or URL from the clipboard must pass the same checks as one in a request.
  const input: Input =
    content.kind === 'path'
      ? { kind: 'path', origin: content.path, path: content.path }
      : { kind: 'url', origin: content.url.href, url: content.url }
  return openSource(input, caller, settings, signal)
}

function inMemory(name: string, bytes: Buffer): Source {
  return {
    name,
    folders: [],
    body: (async function* () {
      yield bytes
    })(),
  }
}

function notAdmitted(kind: SourceKind, caller: Caller): UploadError {
  const what = { form: 'Files', url: 'URLs', path: 'Paths on the server', clipboard: 'The clipboard' }[kind]
  const why =
    caller.admittedBy === 'loopback' ? `sources.${kind}.enabled is false` : `client "${caller.name}"`
  const instead = caller.sources.has('form')
    ? 'Send the file itself in a form instead.'
    : `Available: ${[...caller.sources].join(', ') || 'nothing'}.`
  return new UploadError(
    'source_forbidden',
    `${what} can't be uploaded with this request (${why}). ${instead}`,
  )
}
