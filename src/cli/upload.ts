import { randomUUID } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Settings } from '../config/schema.ts'
import { UploadError } from '../errors.ts'
import { isSocketPath, urlOf } from '../port.ts'
import type { Uploader } from '../uploader/index.ts'
import { type Caller, type Input, SOURCES } from '../uploader/input.ts'
import { openForCommand } from './open.ts'
import { sendToServer } from './send.ts'
import type { CommonOptions, FORMATS, Terminal } from './terminal.ts'

export interface UploadOptions extends CommonOptions {
  picbed?: string
  configName?: string
  format: (typeof FORMATS)[number]
  /** Address of a running server to send through. */
  server?: string
  key?: string
}

/** What became of one file or address of the command line. */
export interface Result {
  /** As it was typed. */
  readonly name: string
  readonly url?: string
  readonly error?: string
}

/** `upload-server upload F…`: one link a line on standard output, in order; 0 only when everything was stored. */
export async function upload(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
): Promise<number> {
  if (names.indexOf('-') !== names.lastIndexOf('-'))
    throw new Error('Standard input (-) can be given once only.')
  const results = options.server
    ? await sendToServer(names, { ...options, server: options.server }, terminal)
    : await uploadHere(names, options, terminal)
  print(results, options.format, terminal)
  const failed = results.filter(result => result.error !== undefined)
  for (const { name, error } of failed) terminal.note(`${name}: ${error}`)
  if (failed.length === 0) return 0
  const again = names.length > 0 ? ` Repeat: ${failed.map(({ name }) => quote(name)).join(' ')}` : ''
  terminal.note(`${failed.length} of ${results.length} failed.${again}`)
  return 1
}

async function uploadHere(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
): Promise<Result[]> {
  const { config, mask, uploader } = await openForCommand(options, terminal)
  try {
    const destination = uploader.choose(options, SELF)
    const inputs = await Promise.all(
      names.map(name => toInput(name, uploader, config.settings.limits.fileSize, destination, terminal)),
    )
    if (names.length === 0) inputs.push({ kind: 'clipboard', origin: 'clipboard' })
    let done = 0
    const outcomes = await uploader.upload({
      destination,
      inputs,
      caller: SELF,
      baseUrl: baseUrlOf(config.settings.server),
      signal: new AbortController().signal,
      requestId: randomUUID(),
      onOutcome: outcome => {
        done++
        if (terminal.isInteractive && inputs.length > 1)
          terminal.note(`${done} of ${inputs.length}: ${outcome.origin}`)
      },
    })
    return outcomes.map(outcome =>
      outcome.ok
        ? { name: outcome.origin, url: outcome.url }
        : { name: outcome.origin, error: mask(outcome.error.message) },
    )
  } finally {
    await uploader.close()
  }
}

/** The person at the command line may read what the system lets them read. */
const SELF: Caller = {
  name: 'command line',
  admittedBy: 'loopback',
  sources: new Set(SOURCES),
  roots: undefined,
  addresses: 'any',
  destinations: undefined,
}

async function toInput(
  name: string,
  uploader: Uploader,
  limit: number,
  destination: ReturnType<Uploader['choose']>,
  { cwd, stdin }: Terminal,
): Promise<Input> {
  if (name === '-') {
    const options = { name: '', spool: uploader.spoolFor(destination), limit }
    const payload = await uploader.payloads.read(stdin, options).catch((error: unknown) => {
      if (error instanceof UploadError) return error
      throw error
    })
    return { kind: 'form', origin: '-', payload }
  }
  if (isWebAddress(name)) return { kind: 'url', origin: name, url: new URL(name) }
  return { kind: 'path', origin: name, path: resolve(cwd, name) }
}

/** Whether an argument is an address and not the name of a file. */
export function isWebAddress(name: string): boolean {
  return /^https?:\/\//i.test(name) && URL.canParse(name)
}

function print(results: readonly Result[], format: UploadOptions['format'], terminal: Terminal): void {
  if (format === 'json') {
    terminal.print(JSON.stringify(results, undefined, 2))
    return
  }
  for (const { name, url } of results) {
    if (url !== undefined) terminal.print(formatLink(url, name, format))
  }
}

function formatLink(url: string, name: string, format: 'url' | 'markdown' | 'html'): string {
  const title = basename(isWebAddress(name) ? new URL(name).pathname : name)
  if (format === 'markdown') return `![${title.replace(/[[\]\\]/g, '\\$&')}](${url})`
  if (format === 'html') return `<img src="${escapeHtml(url)}" alt="${escapeHtml(title)}">`
  return url
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}

function quote(name: string): string {
  return /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replace(/'/g, "'\\''")}'`
}

/** Where links to what the server itself hands out begin. */
function baseUrlOf(server: Settings['server']): string {
  const url = server.publicUrl ?? (isSocketPath(server.host) ? 'http://localhost' : urlOf(server))
  return url.endsWith('/') ? url : `${url}/`
}
