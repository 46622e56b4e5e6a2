import { inMemory } from '../../body.ts'
import { messageOf } from '../../errors.ts'
import type { HttpReply } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import type { HostExchange } from '../shared/form-host.ts'
import type { HostDescription } from './options.ts'
import { answerFunctions, escapeInHeader, escapeInUrl, objectFunctions } from './placeholders.ts'
import { type Functions, fillTemplate, listNames, parseTemplate, type Template } from './template.ts'

type Texts = Readonly<Record<string, string>>
type Pairs = readonly (readonly [name: string, value: Template])[]

/** Placeholders with values that the client chooses, or that follow from them. */
const CHOSEN_PLACEHOLDERS = ['filename', 'key', 'contentType', 'size', 'sha256']

/** Placeholders with values of the response. `responseurl` is omitted, because by default it is the URL of the request. */
const RESPONSE_PLACEHOLDERS = ['response', 'header', 'json', 'xml', 'regex']

const SAMPLE = { ...inMemory(Buffer.of(0)), key: 'a/b.png', contentType: 'image/png', sha256: '' }
const SAMPLE_REPLY = { status: 200, headers: {}, text: '{}', bytes: Buffer.from('{}'), json: () => ({}) }

/** Statuses of success if the URL of the file is read from a redirect. */
const WITH_REDIRECTS = [...Array.from({ length: 100 }, (_, index) => 200 + index), 301, 302, 303]

/** Headers that are set from the body. */
const OWN_HEADERS = ['content-length', 'transfer-encoding', 'connection', 'expect']

/**
 * Parses and checks a description.
 *
 * @throws Error with a sentence if the description is invalid
 */
export function compileHost(description: HostDescription) {
  const { method = 'POST', body = 'multipart', field = 'file', secrets = {} } = description
  const { resultUrl: result = '{response}', success, statuses } = description
  const sent = objectFunctions(SAMPLE, secrets)
  const answered = { ...sent, ...answerFunctions(SAMPLE_REPLY, new URL('http://127.0.0.1/')) }
  const compile = (option: string, texts: Texts = {}): Pairs =>
    Object.entries(texts).map(([name, text]) => [name, read(`${option}.${name}`, text, sent)])
  const locate = (option: string, texts: string | readonly string[] = []): readonly Template[] =>
    [texts].flat().map(text => read(option, asTemplate(option, text), answered))

  const url = read('url', description.url ?? '', sent)
  const query = compile('query', description.query)
  const headers = compile('headers', description.headers)
  const fields = compile('fields', description.fields)
  const file = body === 'raw' ? undefined : field
  const resultUrl = locate('resultUrl', result)
  const deleteUrl = locate('deleteUrl', description.deleteUrl)
  const errorMessage = locate('errorMessage', description.errorMessage)
  const [successAt] = locate('success.at', success?.at)
  for (const [option, templates] of Object.entries({ url: [url], resultUrl, deleteUrl }))
    for (const template of templates) checkOrigin(option, template, sent)
  const sample = fillTemplate(url, sent, escapeInUrl) ?? ''
  if (!/^https?:\/\/[^/]/i.test(sample) || !URL.canParse(sample))
    throw new Error('"url" must be an http or https URL.')
  for (const [name] of headers) checkHeader(name.toLowerCase(), file !== undefined)

  const names = resultUrl.flatMap(listNames)
  const readsAnswer = [...names, ...listNames(successAt ?? [])].some(isOfResponse)
  const usesLocation =
    names.includes('responseurl') || [result].flat().some(text => /\{header:\s*location/i.test(text))
  return {
    /** Whether the host names files itself, as most do, so that nothing is replaced. */
    namesFiles: readsAnswer && method === 'POST',
    /** Fills in the templates for an object. */
    describe(object: UploadObject): HostExchange {
      const functions = objectFunctions(object, secrets)
      const fill = (pairs: Pairs, encode?: typeof escapeInUrl) =>
        Object.fromEntries(pairs.map(([name, text]) => [name, fillTemplate(text, functions, encode)]))
      const place = (template: Template) => (reply: HttpReply, asked: URL) =>
        fillTemplate(template, { ...functions, ...answerFunctions(reply, asked) }, (value, name) =>
          Object.hasOwn(functions, name) ? escapeInUrl(value, name) : value,
        )
      const form = {
        method,
        url: fillTemplate(url, functions, escapeInUrl) ?? '',
        query: fill(query),
        headers: fill(headers, escapeInHeader),
        fields: fill(fields),
        file,
      }
      const answer = {
        success: successAt && success && ([place(successAt), ...success.is] as const),
        url: [...(readsAnswer ? [] : [refusePage]), ...resultUrl.map(place)],
        deleteUrl: deleteUrl.map(place),
        error: errorMessage.map(place),
        statuses: statuses ?? (usesLocation ? WITH_REDIRECTS : undefined),
      }
      return { form, answer }
    },
  }
}

const isOfResponse = (name: string) => RESPONSE_PLACEHOLDERS.includes(name)

/** Where only the status shows a success, an HTML page is one of something else, such as a login. */
function refusePage({ status, headers, text }: HttpReply, { host }: URL): undefined {
  const isPage =
    /^text\/html\b/i.test(headers['content-type'] ?? '') ||
    /^\s*<(?:!doctype|html)\b/i.test(text.slice(0, 1000))
  if (isPage && status < 300)
    throw new Problem(`${host} returned an HTML page instead of the result: ${excerpt(text)}`)
}

function read(option: string, text: string, known: Functions): Template {
  try {
    const template = parseTemplate(text, known)
    fillTemplate(template, known) // throws for invalid parameters
    return template
  } catch (error) {
    throw new Error(`"${option}" ${messageOf(error)}.`)
  }
}

/** Makes a template of text without braces, which is a JSON path. A literal URL is rejected: it would be the same for every file. */
function asTemplate(option: string, text: string): string {
  if (text.includes('{')) return text
  if (text.includes('/'))
    throw new Error(
      `"${option}" has no placeholder. Write where the response contains the value, such as data.url.`,
    )
  return `{json:${text}}`
}

/** @throws Error if a client could choose the host of a URL */
function checkOrigin(option: string, template: Template, sent: Functions): void {
  let text = ''
  for (const part of template) {
    if (/^\w+:\/\/[^/?#\\]+[/?#\\]/.test(text)) return
    const names = listNames([part])
    if (names.some(name => isOfResponse(name) || name === 'responseurl')) return
    const chosen = names.find(name => CHOSEN_PLACEHOLDERS.includes(name))
    if (chosen !== undefined)
      throw new Error(
        `"${option}" has {${chosen}} in its host, so clients could choose the host. Write it after the host and a "/".`,
      )
    text += typeof part === 'string' ? part : (fillTemplate([part], sent, escapeInUrl) ?? '')
  }
}

/** Checks the lower-case name of a header, which is a token (RFC 9110, section 5.6.2). */
function checkHeader(name: string, isForm: boolean): void {
  if (!/^[!#$%&'*+.^_`|~\da-z-]+$/.test(name))
    throw new Error(`"headers" has "${name}", which is not a valid header name.`)
  if (OWN_HEADERS.includes(name) || (isForm && name === 'content-type'))
    throw new Error(`"headers" has "${name}", which is set automatically from the body. Remove it.`)
}

/** Removes headers that are set from the body, such as `Content-Type` with the boundary. */
export function withoutBodyHeaders(headers: Texts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !/^content-?(type|length)$/i.test(name)),
  )
}
