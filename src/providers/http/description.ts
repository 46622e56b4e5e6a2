import { inMemory } from '../../body.ts'
import { messageOf } from '../../errors.ts'
import type { HttpReply } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import type { HostExchange } from '../shared/form-host/index.ts'
import { answerFunctions, objectFunctions } from './placeholders.ts'
import { type Functions, fillTemplate, listNames, parseTemplate, type Template } from './template.ts'

/** Texts by name. Undefined members are ignored. */
type Texts = Readonly<Record<string, string | undefined>>

/**
 * Describes the request and the response of a host. Texts are templates (see `template.ts`). If a text refers to a value in
 * the response, text without braces is a JSON path.
 */
export interface HostDescription {
  /** Default `POST`. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | undefined
  readonly url: string
  /** Added to the query of `url`. */
  readonly query?: Texts | undefined
  readonly headers?: Texts | undefined
  /** `multipart` (default): a form with the file in `field`. `raw`: only the bytes of the file. */
  readonly body?: 'multipart' | 'raw' | undefined
  /** Form field of the file. Default `file`. */
  readonly field?: string | undefined
  /** Form fields before the file. */
  readonly fields?: Texts | undefined
  /** Where the response contains the URL of the file. Of several templates, the first one with a value is used. */
  readonly resultUrl: string | readonly string[]
  /** Where the response contains the URL that deletes the file. */
  readonly deleteUrl?: string | undefined
  /** Where the response contains the error message. */
  readonly errorMessage?: string | readonly string[] | undefined
  /** If set, a response is a success only if the value at `at` is one of `is`. */
  readonly success?: { readonly at: string; readonly is: readonly (string | number | boolean)[] } | undefined
  /** Statuses of success. Default: 200 to 299, and redirects if the URL is read from `Location`. */
  readonly statuses?: readonly number[] | undefined
  /** Values of `{secret:NAME}`. */
  readonly secrets?: Texts | undefined
}

type Pairs = readonly (readonly [name: string, value: Template])[]

/** A description with parsed templates. */
export interface CompiledHost {
  /** Whether the host names files itself, as most do, so that nothing is replaced. */
  readonly namesFiles: boolean
  /** Fills in the templates for an object. */
  describe(object: UploadObject): HostExchange
}

/** Placeholders with values that the client chooses, or that follow from them. */
const CHOSEN_PLACEHOLDERS = new Set(['filename', 'key', 'contentType', 'size', 'sha256'])

/** Placeholders with values of the response. `responseurl` is omitted, because by default it is the URL of the request. */
const RESPONSE_PLACEHOLDERS = new Set(['response', 'header', 'json', 'xml', 'regex'])

const SAMPLE: UploadObject = {
  ...inMemory(Buffer.of(0)),
  key: 'a/b.png',
  contentType: 'image/png',
  sha256: '',
}

/** Default statuses of success. */
const SUCCESSFUL = Array.from({ length: 100 }, (_, index) => 200 + index)

/** Headers that are set from the body. */
const OWN_HEADERS = ['content-length', 'transfer-encoding', 'connection', 'expect']

/**
 * Parses and checks a description.
 *
 * @throws Error with a sentence if the description is invalid
 */
export function compileHost(description: HostDescription): CompiledHost {
  const { method = 'POST', body = 'multipart', field = 'file', success, statuses } = description
  const secrets = Object.fromEntries(pairsOf(description.secrets))
  const sent = objectFunctions(SAMPLE, secrets, 'url')
  const url = new URL('http://127.0.0.1/')
  const reply = { status: 200, headers: {}, text: '{}', bytes: Buffer.from('{}'), json: () => ({}) }
  const answered = { ...sent, ...answerFunctions({ reply, url }) }

  const compile = (option: string, texts: Texts | undefined): Pairs =>
    pairsOf(texts).map(([name, text]) => [name, read(`${option}.${name}`, text, sent)])
  const locate = (option: string, texts: string | readonly string[] = []): readonly Template[] =>
    [texts].flat().map(text => read(option, asTemplate(option, text), answered))
  const compiled = {
    method,
    url: read('url', description.url, sent),
    query: compile('query', description.query),
    headers: compile('headers', description.headers).map(
      ([name, value]) => [name.toLowerCase(), value] as const,
    ),
    fields: compile('fields', description.fields),
    field: body === 'raw' ? undefined : field,
    resultUrl: locate('resultUrl', description.resultUrl),
    deleteUrl: locate('deleteUrl', description.deleteUrl),
    errorMessage: locate('errorMessage', description.errorMessage),
    success: success && {
      at: read('success.at', asTemplate('success.at', success.at), answered),
      is: success.is,
    },
    secrets,
  }
  for (const name of ['url', 'resultUrl', 'deleteUrl'] as const)
    for (const template of name === 'url' ? [compiled.url] : compiled[name]) checkOrigin(name, template, sent)
  checkUrl(fillTemplate(compiled.url, sent))
  checkHeaders(compiled)
  const { resultUrl, deleteUrl, errorMessage } = compiled
  const redirects = usesLocation(description, resultUrl) ? [...SUCCESSFUL, 301, 302, 303] : undefined
  const names = [...resultUrl, ...(compiled.success ? [compiled.success.at] : [])].flatMap(listNames)
  const readsAnswer = names.some(name => RESPONSE_PLACEHOLDERS.has(name))
  return {
    namesFiles: readsAnswer && method === 'POST',
    describe(object) {
      const plain = objectFunctions(object, secrets, 'text')
      const inUrl = objectFunctions(object, secrets, 'url')
      const inHeader = objectFunctions(object, secrets, 'header')
      const fill = (pairs: Pairs, functions: Functions) =>
        Object.fromEntries(pairs.map(([name, text]) => [name, fillTemplate(text, functions, plain)]))
      const place = (template: Template) => (reply: HttpReply, url: URL) => {
        const answered = answerFunctions({ reply, url })
        return fillTemplate(template, { ...inUrl, ...answered }, { ...plain, ...answered })
      }
      const form = {
        method,
        url: fillTemplate(compiled.url, inUrl, plain) ?? '',
        query: fill(compiled.query, plain),
        headers: fill(compiled.headers, inHeader),
        fields: fill(compiled.fields, plain),
        file: compiled.field,
        secrets: Object.values(secrets),
      }
      const answer = {
        success: compiled.success && ([place(compiled.success.at), ...compiled.success.is] as const),
        url: [...(readsAnswer ? [] : [refusePage]), ...resultUrl.map(place)],
        deleteUrl: deleteUrl.map(place),
        error: errorMessage.map(place),
        statuses: statuses ?? redirects,
      }
      return { form, answer }
    },
  }
}

/** Where only the status shows a success, an HTML page is one of something else, such as a login. */
function refusePage({ status, headers, text }: HttpReply, { host }: URL): undefined {
  const isPage =
    /^text\/html\b/i.test(headers['content-type'] ?? '') ||
    /^\s*<(?:!doctype|html)\b/i.test(text.slice(0, 1000))
  if (isPage && status < 300)
    throw new Problem(`${host} returned an HTML page instead of the result: ${excerpt(text)}`)
}

function pairsOf(texts: Texts = {}): [string, string][] {
  return Object.entries(texts).filter((pair): pair is [string, string] => pair[1] !== undefined)
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

function checkUrl(url: string | undefined): void {
  if (!/^https?:\/\/[^/]/i.test(url ?? '') || !URL.canParse(url ?? ''))
    throw new Error('"url" must be an http or https URL.')
}

/** @throws Error if a client could choose the host of a URL */
function checkOrigin(option: string, template: Template, sent: Functions): void {
  let text = ''
  for (const part of template) {
    if (/^\w+:\/\/[^/?#\\]+[/?#\\]/.test(text)) return
    const names = listNames([part])
    if (names.some(name => RESPONSE_PLACEHOLDERS.has(name) || name === 'responseurl')) return
    const chosen = names.find(name => CHOSEN_PLACEHOLDERS.has(name))
    if (chosen !== undefined)
      throw new Error(
        `"${option}" has {${chosen}} in its host, so clients could choose the host. Write it after the host and a "/".`,
      )
    text += typeof part === 'string' ? part : (fillTemplate([part], sent) ?? '')
  }
}

/** Checks header names, which are tokens (RFC 9110, section 5.6.2). */
function checkHeaders({ headers, field }: { headers: Pairs; field: string | undefined }): void {
  for (const [name] of headers) {
    if (!/^[!#$%&'*+.^_`|~\da-z-]+$/.test(name))
      throw new Error(`"headers" has "${name}", which is not a valid header name.`)
    if (OWN_HEADERS.includes(name) || (field !== undefined && name === 'content-type'))
      throw new Error(`"headers" has "${name}", which is set automatically from the body. Remove it.`)
  }
}

/** Returns whether the URL of the file is read from a redirect, which is a success then. */
function usesLocation({ resultUrl }: HostDescription, templates: readonly Template[]): boolean {
  const names = templates.flatMap(listNames)
  return names.includes('responseurl') || [resultUrl].flat().some(text => /\{header:\s*location/i.test(text))
}
