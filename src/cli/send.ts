import { openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import { explainNetwork, isNoTls, isUntrusted, networkCodeOf } from '../http/network.ts'
import { readClipboard } from '../uploader/sources/clipboard/index.ts'
import { type Answer, AnswerError, readAnswer } from './answer.ts'
import { isWebAddress, type Result } from './format.ts'
import { findFile, NOTHING_ON_STDIN } from './local-file.ts'
import { INTERRUPTION, oneLine, type Terminal } from './terminal.ts'

/** Of a server that has stored files and gives no links until it has finished. */
const UNFINISHED = 'it is stored, but not finished'

export interface SendOptions {
  /** Address of the server, with or without `/upload`. */
  server: string
  key?: string
  picbed?: string
  configName?: string
  path?: string
  /** What standard input is called. */
  name?: string
}

/** Largest picture taken from the clipboard, bytes; for everything else the server decides. */
const CLIPBOARD_BYTES = 100 * 1024 * 1024

/** Sends files as a form and addresses as a list through a running server, and puts the answers back in order. */
export async function sendToServer(
  names: readonly string[],
  options: SendOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Result[]> {
  terminal.learn([options.key ?? '', passwordOf(new URL(options.server))].filter(secret => secret !== ''))
  const all = names.length > 0 ? names : ['clipboard']
  const results: Result[] = all.map(name => ({ name, error: INTERRUPTION }))
  const form = new FormData()
  const formIndexes: number[] = []
  const urlIndexes: number[] = []
  for (const [index, name] of all.entries()) {
    if (isWebAddress(name)) {
      urlIndexes.push(index)
      continue
    }
    try {
      const [blob, fileName] =
        names.length === 0 ? await fromClipboard(terminal) : await openFile(name, options.name, terminal)
      form.append('file', blob, fileName)
      formIndexes.push(index)
    } catch (error) {
      results[index] = { name, error: (error as Error).message }
    }
  }
  const send = async (indexes: number[], init: RequestInit) => {
    if (indexes.length === 0 || signal.aborted) return
    const { outcomes, message, finalizationId } = await post(options, { ...init, signal }, indexes.length)
    if (finalizationId !== undefined)
      terminal.note(oneLine(terminal.mask(`${UNFINISHED}: ${message ?? ''}`.trim())))
    for (const [place, index] of indexes.entries()) {
      const name = all[index] as string
      if (finalizationId !== undefined) {
        results[index] = { name, error: UNFINISHED, finalizationId }
        continue
      }
      const { url, error = message ?? 'the answer has no link for it' } = outcomes[place] ?? {}
      results[index] = url === undefined ? { name, error: terminal.mask(error) } : { name, url }
    }
  }
  await send(formIndexes, { body: form })
  await send(urlIndexes, {
    body: JSON.stringify({ list: urlIndexes.map(index => all[index]) }),
    headers: { 'Content-Type': 'application/json' },
  })
  return results
}

/** @param server its address, with or without `/upload` */
export function uploadAddress(server: string): URL {
  const url = new URL(server)
  if (!/\/upload\/?$/.test(url.pathname)) url.pathname = `${url.pathname.replace(/\/$/, '')}/upload`
  return url
}

/** What stands in an address is percent-encoded, unless somebody has typed it as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const passwordOf = ({ password }: URL) => decode(password)

/** Takes user name and password out of an address, which `fetch` refuses, as Basic authorization (RFC 7617) for a proxy. */
function takeLogin(url: URL): string | undefined {
  if (url.username === '' && url.password === '') return undefined
  const login = `${decode(url.username)}:${passwordOf(url)}`
  url.username = ''
  url.password = ''
  return `Basic ${Buffer.from(login).toString('base64')}`
}

async function post(
  { server, key, picbed, configName, path }: SendOptions,
  init: RequestInit,
  count: number,
): Promise<Answer> {
  const url = uploadAddress(server)
  if (picbed) url.searchParams.set('picbed', picbed)
  if (configName) url.searchParams.set('configName', configName)
  if (path) url.searchParams.set('path', path)
  const headers = new Headers(init.headers)
  const login = takeLogin(url)
  if (login !== undefined) headers.set('Authorization', login)
  if (key) headers.set('X-Upload-Key', Buffer.from(key, 'utf8').toString('latin1'))
  const failed = (message: string): Answer => ({
    outcomes: [],
    message: init.signal?.aborted ? INTERRUPTION : message,
  })
  let response: Response
  try {
    // Whoever a redirect leads to would get the key.
    response = await fetch(url, { ...init, method: 'POST', headers, redirect: 'manual' })
  } catch (error) {
    return failed(`${url.host} can't be reached: ${reasonOf(error)}`)
  }
  const { status } = response
  const to = response.headers.get('location')
  if (status >= 300 && status < 400 && to !== null && URL.canParse(to, url.href))
    return failed(
      `${url.host} leads to ${new URL(to, url).origin} (${status}): give that address, if it is yours`,
    )
  try {
    return await readAnswer(response, count, url.host)
  } catch (error) {
    const isOurs = error instanceof AnswerError
    return failed(isOurs ? error.message : `the answer of ${url.host} broke off: ${reasonOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const code = networkCodeOf(error)
  if (code === 'ECONNREFUSED') return 'nothing listens there. Is the server running? upload-server starts it'
  if (isNoTls(code)) return 'it speaks no TLS. Its address begins with http://'
  if (isUntrusted(code))
    return `its certificate is not trusted (${code}). NODE_EXTRA_CA_CERTS names further ones`
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return explainNetwork(cause) ?? (cause instanceof Error ? cause.message : String(cause))
}

async function openFile(
  name: string,
  stdinName: string | undefined,
  terminal: Terminal,
): Promise<[Blob, string]> {
  if (name === '-') {
    const chunks: Uint8Array[] = []
    for await (const chunk of terminal.stdin) chunks.push(chunk)
    if (chunks.length === 0) throw new Error(NOTHING_ON_STDIN)
    return [new Blob([Buffer.concat(chunks)]), stdinName ?? 'file']
  }
  const { path, fault } = await findFile(name, terminal)
  if (fault !== undefined) throw new Error(fault)
  return [await openAsBlob(path), basename(path)]
}

async function fromClipboard({ env }: Terminal): Promise<[Blob, string]> {
  const content = await readClipboard({ env, maxBytes: CLIPBOARD_BYTES })
  if (content.kind === 'image') return [new Blob([content.body]), content.name]
  if (content.kind === 'path') return [await openAsBlob(content.path), basename(content.path)]
  throw new Error('the clipboard holds an address: give it as an argument')
}
