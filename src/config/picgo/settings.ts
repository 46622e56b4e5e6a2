import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { isListenHost } from '../endpoint.ts'
import type { Json } from '../json.ts'
import { compact, member, type OnNote, sectionOf, text } from './json.ts'

/** Our `server` section: port, host and upload key. Empty if the old file sets none of them. Some files have it at the top. */
export function translateServer(file: Json, settings: Json, note: OnNote): Json {
  const path = member(settings, 'server') === undefined ? 'server' : 'settings.server'
  const server = sectionOf(path === 'server' ? file : settings, 'server', path, note)
  return compact({
    host: readHost(server.host, path, note),
    port: readPort(server.port, path, note),
    key: readKey(settings, server, path, note),
  })
}

/** Our `network` section, from `picBed.proxy`; undefined if that is not set. */
export function translateProxy(picBed: Json, note: OnNote): Json | undefined {
  const address = text(picBed.proxy)
  if (address === undefined) return undefined
  const proxy = completeProxy(address)
  if (parseProxy(proxy)) return { proxy }
  note('picBed.proxy', 'was ignored: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy')
  return undefined
}

function readHost(value: unknown, path: string, note: OnNote): string | undefined {
  const host = text(value)
  if (host !== undefined && isListenHost(host)) return host
  if (value !== undefined) note(`${path}.host`, 'was ignored: it is not a hostname')
  return undefined
}

/** PicGo and PicList store the port as it was typed, often as a string. */
function readPort(value: unknown, path: string, note: OnNote): number | undefined {
  const port = Number(text(value) ?? value)
  const isPort = (typeof value === 'string' || typeof value === 'number') && Number.isInteger(port)
  if (isPort && port >= 1 && port <= 65535) return port
  if (value !== undefined) note(`${path}.port`, 'was ignored: it is not a port number')
  return undefined
}

/** PicList keeps it in `settings.serverKey`, PicGo 3 in `settings.server.secret`; guides also show `settings.server.key`. */
function readKey(settings: Json, server: Json, path: string, note: OnNote): string | undefined {
  const places = {
    'settings.serverKey': settings.serverKey,
    [`${path}.secret`]: server.secret,
    [`${path}.key`]: server.key,
  }
  let used: { path: string; key: string } | undefined
  for (const [path, value] of Object.entries(places)) {
    if (value === undefined || value === null || value === '') continue
    const key = typeof value === 'number' ? String(value) : text(value)
    used ??= key === undefined ? undefined : { path, key }
    if (key === undefined) note(path, 'was ignored: it is not text')
    else if (key !== used?.key) note(path, `was ignored: "${used?.path}" takes precedence`)
  }
  return used?.key
}

/** Log levels of PicGo, the most verbose first, and our equivalents. */
const LEVELS = [
  ['debug', 'debug'],
  ['all', 'info'],
  ['success', 'info'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['error', 'error'],
] as const

/** Reads `settings.logLevel`, a level or a list of levels; undefined if absent. */
export function translateLogLevel(settings: Json, note: OnNote): string | undefined {
  const value = settings.logLevel
  if (value === undefined) return undefined
  const wanted = Array.isArray(value) ? value : [value]
  const level = LEVELS.find(([theirs]) => wanted.includes(theirs))?.[1]
  if (level !== undefined) return level
  const isNone = wanted.includes('none')
  note(
    'settings.logLevel',
    isNone ? 'is "none", but errors are still logged' : 'was ignored: it is not a log level',
  )
  return isNone ? 'error' : undefined
}
