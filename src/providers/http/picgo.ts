import { readTextOption, type Translated } from '../shared/picgo-options.ts'
import { hideCredentials, hideInUrl } from './credentials.ts'
import { literal } from './template.ts'

type Options = Record<string, unknown>
type Texts = Record<string, string>

/** Translates options of picgo-plugin-web-uploader, or of PicList's `advancedplist`, which have an `endpoint`. */
export function fromPicGo(old: Options): Translated {
  return 'endpoint' in old || 'uploadScriptName' in old ? fromAdvanced(old) : fromWebUploader(old)
}

/** The plugin splits `jsonPath` at dots, also before numbers. Without it, the response is the URL. */
function fromWebUploader({ url, paramName, jsonPath, customHeader, customBody }: Options): Translated {
  const notes: string[] = []
  const secrets: Texts = {}
  const options = {
    url: hideInUrl(readTextOption(url) ?? '', secrets),
    field: readTextOption(paramName),
    headers: hideCredentials(withoutType(readTexts('customHeader', customHeader, notes)), secrets),
    fields: hideCredentials(readTexts('customBody', customBody, notes), secrets),
    resultUrl: readTextOption(jsonPath),
  }
  return { options: { ...options, secrets, keyTemplate: '{filename}{extname}' }, notes }
}

function fromAdvanced(old: Options): Translated {
  const notes: string[] = []
  const secrets: Texts = {}
  const method = readTextOption(old['method'])?.toUpperCase() ?? 'POST'
  if (readTextOption(old['uploadScriptName']))
    notes.push('"uploadScriptName" was not imported: scripts of PicList are not supported.')
  if (method === 'GET') notes.push('"method" was not imported: GET can\'t send a file.')
  const options = {
    url: hideInUrl(readTextOption(old['endpoint']) ?? '', secrets),
    method: method === 'GET' ? undefined : method,
    field: readTextOption(old['formDataKey']),
    headers: hideCredentials(withoutType(readTexts('headers', old['headers'], notes)), secrets),
    fields: hideCredentials(readTexts('body', old['body'], notes), secrets),
    resultUrl: joinResult(old),
  }
  return { options: { ...options, secrets, keyTemplate: '{filename}{extname}' }, notes }
}

/** Builds the URL as PicList does: `customPrefix` is prepended, and with `webPath` only the last segment of the URL is used. */
function joinResult(old: Options): string {
  const path = readTextOption(old['resDataPath']) ?? 'data.url'
  const [prefix, webPath] = [readTextOption(old['customPrefix']) ?? '', readTextOption(old['webPath'])]
  if (webPath !== undefined)
    return `${literal(prefix + webPath.replace(/\/?$/, '/'))}{regex:{json:${path}}|[^/]*$|0}`
  return prefix === '' ? path : `${literal(prefix)}{json:${path}}`
}

/** Reads a JSON object, or text with one. */
function readTexts(name: string, value: unknown, notes: string[]): Texts {
  const text = readTextOption(value)
  try {
    const object: unknown = text === undefined ? (value ?? {}) : JSON.parse(text)
    if (typeof object === 'object' && object !== null && !Array.isArray(object))
      return Object.fromEntries(Object.entries(object).map(([key, item]) => [key, asText(item)]))
  } catch {
    // The note below reports it.
  }
  if (value !== '' && value !== false) notes.push(`"${name}" was not imported: it is not a JSON object.`)
  return {}
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Removes `Content-Type`, which is set from the body, including the boundary. */
function withoutType(headers: Texts): Texts {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !/^content-?(type|length)$/i.test(name)),
  )
}
