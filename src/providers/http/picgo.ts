import { decodeSafely } from '../../mask.ts'
import { isRecord } from '../../members.ts'
import { type PicGoOptions, textOf } from '../shared/picgo-options.ts'
import { isCredential, PARAMETER } from './credentials.ts'
import { withoutBodyHeaders } from './description.ts'
import { literal } from './template.ts'

type Texts = Record<string, string>

/** Names of options in picgo-plugin-web-uploader, and in PicList's `advancedplist`, which has an `endpoint`. */
const PLUGIN = { url: 'url', field: 'paramName', headers: 'customHeader', fields: 'customBody' }
const ADVANCED = { url: 'endpoint', field: 'formDataKey', headers: 'headers', fields: 'body' }

export function picgo(old: PicGoOptions): Record<string, unknown> {
  const isAdvanced = 'endpoint' in old.all || 'uploadScriptName' in old.all
  const names = isAdvanced ? ADVANCED : PLUGIN
  const secrets: Texts = {}
  return {
    url: hideInUrl(old.text(names.url) ?? '', secrets),
    field: old.text(names.field),
    headers: withoutBodyHeaders(readTemplates(names.headers, old, secrets)),
    fields: readTemplates(names.fields, old, secrets),
    // The plugin splits the path at dots, also before numbers. Without it, the response is the URL.
    ...(isAdvanced ? readAdvanced(old) : { resultUrl: old.text('jsonPath') }),
    secrets,
    keyTemplate: '{filename}{extname}',
  }
}

/** Builds the URL as PicList does: `customPrefix` is prepended, and with `webPath` only the last segment of the URL is used. */
function readAdvanced(old: PicGoOptions): { method?: string; resultUrl: string } {
  if (old.text('uploadScriptName'))
    old.note('"uploadScriptName" was not imported: scripts of PicList are not supported.')
  const method = old.text('method')?.toUpperCase() ?? 'POST'
  if (method === 'GET') old.note('"method" was not imported: GET can\'t send a file.')
  const [prefix = '', path = 'data.url'] = [old.text('customPrefix'), old.text('resDataPath')]
  const folder = old.text('webPath')?.replace(/\/?$/, '/')
  const last = folder && `${literal(prefix + folder)}{regex:{json:${path}}|[^/]*$|0}`
  return {
    ...(method !== 'GET' && { method }),
    resultUrl: last ?? (prefix === '' ? path : `${literal(prefix)}{json:${path}}`),
  }
}

/** Reads a JSON object, or text with one, as templates. Credentials in it are moved to `secrets`. */
function readTemplates(name: string, { all, note }: PicGoOptions, secrets: Texts): Texts {
  const value = all[name] || undefined
  let object: unknown
  try {
    const text = textOf(value)
    object = text === undefined ? (value ?? {}) : JSON.parse(text)
  } catch {
    // The note below reports it.
  }
  if (!isRecord(object)) {
    note(`"${name}" was not imported: it is not a JSON object.`)
    return {}
  }
  const read = ([key, item]: [string, unknown]) => {
    const text = typeof item === 'string' ? item : JSON.stringify(item)
    return [key, isCredential(key) && text !== '' ? keep(key, text, secrets) : literal(text)]
  }
  return Object.fromEntries(Object.entries(object).map(read))
}

/** Makes a template of a URL, with the credentials in its query moved to `secrets`. */
function hideInUrl(url: string, secrets: Texts): string {
  return literal(url).replace(PARAMETER, (whole, separator: string, name: string, value: string) => {
    if (!isCredential(name) || value === '') return whole
    return `${separator}${name}=${keep(name, decodeSafely(value), secrets)}`
  })
}

/** Adds a credential to `secrets` under a free name and returns its placeholder. */
function keep(name: string, value: string, secrets: Texts): string {
  const plain = name.replace(/[^\w.-]/g, '_')
  let label = plain
  for (let number = 2; Object.hasOwn(secrets, label) && secrets[label] !== value; number++)
    label = `${plain}-${number}`
  secrets[label] = value
  return `{secret:${label}}`
}
