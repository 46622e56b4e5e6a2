import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import type { Json } from '../json.ts'
import { compact, type Note, section, text } from './json.ts'

/** `server` of ours: port, host and key. Empty when the old file says nothing. */
export function translateServer(settings: Json, note: Note): Json {
  const server = section(settings, 'server', 'settings.server', note)
  return compact({
    host: readHost(server.host, note),
    port: readPort(server.port, note),
    key: readKey(settings, server, note),
  })
}

/** `network` of ours from `picBed.proxy`; undefined when that says nothing. */
export function translateProxy(picBed: Json, note: Note): Json | undefined {
  const address = text(picBed.proxy)
  if (address === undefined) return undefined
  const proxy = completeProxy(address)
  if (parseProxy(proxy)) return { proxy }
  note('picBed.proxy', 'was left out: it is no address of a proxy for HTTP, HTTPS or SOCKS5')
  return undefined
}

function readHost(value: unknown, note: Note): string | undefined {
  if (value !== undefined && text(value) === undefined)
    note('settings.server.host', 'was left out: it is no host name')
  return text(value)
}

/** The desktop applications store what was typed, often a string. */
function readPort(value: unknown, note: Note): number | undefined {
  const port = Number(text(value) ?? value)
  const isPort = (typeof value === 'string' || typeof value === 'number') && Number.isInteger(port)
  if (isPort && port >= 1 && port <= 65535) return port
  if (value !== undefined) note('settings.server.port', 'was left out: it is no port number')
  return undefined
}

/** PicList keeps it in `settings.serverKey`, PicGo 3 in `settings.server.secret`; guides also show `settings.server.key`. */
function readKey(settings: Json, server: Json, note: Note): string | undefined {
  const places = {
    'settings.serverKey': settings.serverKey,
    'settings.server.secret': server.secret,
    'settings.server.key': server.key,
  }
  let used: { path: string; key: string } | undefined
  for (const [path, value] of Object.entries(places)) {
    if (value === undefined || value === null || value === '') continue
    const key = typeof value === 'number' ? String(value) : text(value)
    used ??= key === undefined ? undefined : { path, key }
    if (key === undefined) note(path, 'was left out: it is no text')
    else if (key !== used?.key) note(path, `was left out: "${used?.path}" is used`)
  }
  return used?.key
}

/** Levels of PicGo, the most talkative first, by those of ours. */
const LEVELS = [
  ['debug', 'debug'],
  ['all', 'info'],
  ['success', 'info'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['error', 'error'],
] as const

/** `settings.logLevel`, a level or a list of those wanted; undefined when absent. */
export function translateLogLevel(settings: Json, note: Note): string | undefined {
  const value = settings.logLevel
  if (value === undefined) return undefined
  const wanted = Array.isArray(value) ? value : [value]
  const level = LEVELS.find(([theirs]) => wanted.includes(theirs))?.[1]
  if (level !== undefined) return level
  const isNone = wanted.includes('none')
  note('settings.logLevel', isNone ? 'is "none", but errors are logged' : 'was left out: it names no level')
  return isNone ? 'error' : undefined
}
