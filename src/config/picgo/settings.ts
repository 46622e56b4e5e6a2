import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { at, isRecord, type Json, membersOf } from '../../members.ts'
import { isRegExp } from '../destination.ts'
import { isListenHost } from '../endpoint.ts'
import { compact, type Old } from './old.ts'

/** Our `server` section: port, host and upload key. Some files have it at the top. */
export function readServer(file: Old, settings: Old): Json | undefined {
  const server = (settings.get('server') === undefined ? file : settings).section('server')
  return compact({
    host: server.readText('host', 'it is not a hostname', text => (isListenHost(text) ? text : undefined)),
    port: server.readText('port', 'it is not a port number', text =>
      /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 65535 ? Number(text) : undefined,
    ),
    // PicList's, PicGo's since version 3, and one that guides show.
    key: settings.text('serverKey') ?? server.text('secret') ?? server.text('key'),
  })
}

/** Our `network` section. */
export function readNetwork(picBed: Old): Json | undefined {
  const proxy = picBed.readText('proxy', 'it is not the URL of an HTTP, HTTPS or SOCKS5 proxy', text =>
    parseProxy(completeProxy(text)) ? completeProxy(text) : undefined,
  )
  return proxy === undefined ? undefined : { proxy }
}

/** Log levels of PicGo, the most verbose first. */
const LEVELS = ['debug', 'all', 'success', 'info', 'warn', 'error', 'none'] as const

/** Our equivalents of those that have other names. Errors are always logged. */
const OUR_LEVELS: Readonly<Record<string, string>> = { all: 'info', success: 'info', none: 'error' }

/** Our `log` section, from a level or a list of levels. */
export function readLog(settings: Old): Json | undefined {
  const level = settings.read('logLevel', 'it is not a log level', value =>
    LEVELS.find(one => [value].flat().includes(one)),
  )
  return level && { level: OUR_LEVELS[level] ?? level }
}

/** PicGo's rewrite rules for links, which apply to all destinations. PicGo applies only the first rule that matches. */
export function readRewriteRules(settings: Old): Json[] | undefined {
  const { rules } = membersOf(settings.get('urlRewrite'))
  const path = 'urlRewrite.rules'
  const usable = (Array.isArray(rules) ? rules : []).flatMap((rule, index): Json[] => {
    const { match, replace, enable, global, ignoreCase } = membersOf(rule)
    if (!isRecord(rule) || enable === false) return []
    const flags = (global === true ? 'g' : '') + (ignoreCase === true ? 'i' : '')
    if (typeof match === 'string' && match !== '' && isRegExp(match) && typeof replace === 'string')
      return [{ from: match, to: replace, ...(flags && { flags }) }]
    settings.note(at(path, index), 'was skipped: it is not a valid rule')
    return []
  })
  if (usable.length > 1)
    settings.note(path, 'are all applied in order if they match, not only the first that does')
  return usable.length > 0 ? usable : undefined
}

/** Plugins whose uploader one of our providers replaces. */
const NOT_NEEDED = new Set(['picgo-plugin-s3', 'picgo-plugin-web-uploader'])

const UNSUPPORTED_SETTINGS = {
  rename: 'the server cannot ask for a name',
  useShortUrl: 'URLs are not shortened',
  enableWebServer: 'the server serves only files of "local" destinations with "serve"',
  deleteLocalFile: 'uploaded files are never deleted',
}

/** Adds a note for each feature in use that this server does not have. Settings of the user interface get none. */
export function noteLeftOut(file: Old, picBed: Old, settings: Old): void {
  if (file.text('configPath') !== undefined)
    file.note('configPath', 'is the file that PicGo really uses. Import that one instead')
  const uploaded = file.get('uploaded')
  if (Array.isArray(uploaded) && uploaded.length > 0)
    file.note('uploaded', 'was ignored: the gallery is not imported')
  if (!['path', 'base64', undefined].includes(picBed.text('transformer')))
    picBed.note('transformer', 'was ignored: plugins do not run here')
  const plugins = Object.entries(membersOf(file.get('picgoPlugins')))
  const active = plugins.flatMap(([name, isOn]) => (isOn === true && !NOT_NEEDED.has(name) ? [name] : []))
  if (active.length > 0)
    file.note('picgoPlugins', `was ignored: plugins do not run here (${active.join(', ')})`)
  for (const [name, reason] of Object.entries(UNSUPPORTED_SETTINGS))
    if (settings.isOn(name)) settings.note(name, `was ignored: ${reason}`)
}
