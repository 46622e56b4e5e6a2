import { isRecord } from '../../members.ts'
import { type PicGoOptions, textOf } from '../shared/picgo-options.ts'
import { hideCredentials, hideInUrl } from './credentials.ts'
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
