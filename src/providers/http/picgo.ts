import { decodeSafely } from '../../mask.ts'
import { isRecord } from '../../members.ts'
import { type PicGoOptions, textOf } from '../shared/picgo-options.ts'
import { isCredential, PARAMETER } from './credentials.ts'
import { withoutBodyHeaders } from './description.ts'
import { literal } from './template.ts'

type Texts = Record<string, string>

/** Translates options of picgo-plugin-web-uploader, or of PicList's `advancedplist`, which have an `endpoint`. */
export function picgo(old: PicGoOptions): Record<string, unknown> {
  const isAdvanced = 'endpoint' in old.all || 'uploadScriptName' in old.all
  const secrets: Texts = {}
  const readFields = (name: string) => hideCredentials(readTexts(name, old), secrets)
  const readHeaders = (name: string) => withoutBodyHeaders(readFields(name))
  const common = { secrets, keyTemplate: '{filename}{extname}' }
  if (!isAdvanced)
    return {
      url: hideInUrl(old.text('url') ?? '', secrets),
      field: old.text('paramName'),
      headers: readHeaders('customHeader'),
      fields: readFields('customBody'),
      // The plugin splits the path at dots, also before numbers. Without it, the response is the URL.
      resultUrl: old.text('jsonPath'),
      ...common,
    }
  const method = old.text('method')?.toUpperCase() ?? 'POST'
  if (old.text('uploadScriptName'))
    old.note('"uploadScriptName" was not imported: scripts of PicList are not supported.')
  if (method === 'GET') old.note('"method" was not imported: GET can\'t send a file.')
  return {
    url: hideInUrl(old.text('endpoint') ?? '', secrets),
    method: method === 'GET' ? undefined : method,
    field: old.text('formDataKey'),
    headers: readHeaders('headers'),
    fields: readFields('body'),
    resultUrl: joinResult(old),
    ...common,
  }
}

/** Builds the URL as PicList does: `customPrefix` is prepended, and with `webPath` only the last segment of the URL is used. */
function joinResult(old: PicGoOptions): string {
  const path = old.text('resDataPath') ?? 'data.url'
  const [prefix, webPath] = [old.text('customPrefix') ?? '', old.text('webPath')]
  if (webPath !== undefined)
    return `${literal(prefix + webPath.replace(/\/?$/, '/'))}{regex:{json:${path}}|[^/]*$|0}`
  return prefix === '' ? path : `${literal(prefix)}{json:${path}}`
}

/** Reads a JSON object, or text with one. */
function readTexts(name: string, { all, note }: PicGoOptions): Texts {
  const value = all[name]
  const text = textOf(value)
  try {
    const object: unknown = text === undefined ? (value ?? {}) : JSON.parse(text)
    if (isRecord(object))
      return Object.fromEntries(Object.entries(object).map(([key, item]) => [key, asText(item)]))
  } catch {
    // The note below reports it.
  }
  if (value !== '' && value !== false) note(`"${name}" was not imported: it is not a JSON object.`)
  return {}
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Makes templates of plain texts, with credentials moved to `secrets`. */
function hideCredentials(texts: Texts, secrets: Texts): Texts {
  return Object.fromEntries(
    Object.entries(texts).map(([name, value]) => [
      name,
      isCredential(name) && value !== '' ? keep(name, value, secrets) : literal(value),
    ]),
  )
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
