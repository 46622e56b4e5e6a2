import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import type { Json } from '../../members.ts'
import { isListenHost } from '../endpoint.ts'
import { compact, type Old, textOf } from './old.ts'

/** Our `server` section: port, host and upload key. Empty if the old file sets none of them. Some files have it at the top. */
export function translateServer(file: Old, settings: Old): Json {
  const server = (settings.get('server') === undefined ? file : settings).section('server')
  return compact({
    host: server.read('host', 'it is not a hostname', value => {
      const host = textOf(value)
      return host !== undefined && isListenHost(host) ? host : undefined
    }),
    port: server.read('port', 'it is not a port number', toPort),
    key: readKey(settings, server),
  })
}

/** Our `network` section, from `picBed.proxy`; undefined if that is not set. */
export function translateProxy(picBed: Old): Json | undefined {
  const address = picBed.text('proxy')
  if (address === undefined) return undefined
  const proxy = completeProxy(address)
  if (parseProxy(proxy)) return { proxy }
  picBed.note('proxy', 'was ignored: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy')
  return undefined
}

/** PicGo and PicList store the port as it was typed, often as a string. */
function toPort(value: unknown): number | undefined {
  const port = Number(textOf(value) ?? (typeof value === 'number' ? value : Number.NaN))
  return Number.isInteger(port) && port >= 1 && port <= 65535 ? port : undefined
}

/** PicList keeps it in `settings.serverKey`, PicGo 3 in `settings.server.secret`; guides also show `settings.server.key`. */
function readKey(settings: Old, server: Old): string | undefined {
  let used: { path: string; key: string } | undefined
  for (const [section, name] of [
    [settings, 'serverKey'],
    [server, 'secret'],
    [server, 'key'],
  ] as const) {
    const value = section.get(name)
    if (value === undefined || value === null || value === '') continue
    const key = typeof value === 'number' ? String(value) : textOf(value)
    used ??= key === undefined ? undefined : { path: `${section.path}.${name}`, key }
    if (key === undefined) section.note(name, 'was ignored: it is not text')
    else if (key !== used?.key) section.note(name, `was ignored: "${used?.path}" takes precedence`)
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

/** Our `log` section, from `settings.logLevel`, a level or a list of levels; undefined if absent. */
export function translateLog(settings: Old): Json | undefined {
  const level = settings.read('logLevel', 'it is not a log level', value => {
    const wanted = Array.isArray(value) ? value : [value]
    const found = LEVELS.find(([theirs]) => wanted.includes(theirs))?.[1]
    if (found !== undefined || !wanted.includes('none')) return found
    settings.note('logLevel', 'is "none", but errors are still logged')
    return 'error'
  })
  return level && { level }
}
