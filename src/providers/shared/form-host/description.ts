import { messageOf } from '../../../errors.ts'
import type { UploadObject } from '../../contract.ts'
import { answerFunctions, objectFunctions } from './placeholders.ts'
import { type Functions, fillTemplate, listNames, parseTemplate, type Template } from './template.ts'

/** Texts by name; members that are undefined are left out. */
type Texts = Readonly<Record<string, string | undefined>>

/**
 * How a host takes a file and what it answers, as data. Texts are templates (see `template.ts`); where a text names a
 * place in the answer, one without braces is a JSON path.
 */
export interface HostDescription {
  /** Default `POST`. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | undefined
  readonly url: string
  /** Added to the query of `url`. */
  readonly query?: Texts | undefined
  readonly headers?: Texts | undefined
  /** `multipart` (default): a form with the file in `field`; `raw`: the bytes alone. */
  readonly body?: 'multipart' | 'raw' | undefined
  /** Form field of the file. Default `file`. */
  readonly field?: string | undefined
  /** Form fields before the file. */
  readonly fields?: Texts | undefined
  /** Where the address of the file stands in the answer; of several places the first that holds something. */
  readonly resultUrl: string | readonly string[]
  /** Where the address that removes the file stands. */
  readonly deleteUrl?: string | undefined
  /** Where the answer says what went wrong. */
  readonly errorMessage?: string | readonly string[] | undefined
  /** An answer is a success only with one of these values at that place. */
  readonly success?: { readonly at: string; readonly is: readonly (string | number | boolean)[] } | undefined
  /** Statuses of success. Default: 200 to 299, and redirects when the address is taken from `Location`. */
  readonly statuses?: readonly number[] | undefined
  /** What `{secret:NAME}` stands for. */
  readonly secrets?: Texts | undefined
}

type Pairs = readonly (readonly [name: string, value: Template])[]

/** A description whose templates have been read. */
export interface CompiledHost {
  readonly method: 'POST' | 'PUT' | 'PATCH'
  readonly url: Template
  readonly query: Pairs
  /** Names in lower case. */
  readonly headers: Pairs
  readonly fields: Pairs
  /** Undefined: the body is the file alone. */
  readonly field: string | undefined
  readonly resultUrl: readonly Template[]
  readonly deleteUrl: readonly Template[]
  readonly errorMessage: readonly Template[]
  readonly success: { readonly at: Template; readonly is: ReadonlySet<string> } | undefined
  /** Whether success depends on anything in the answer but its status. */
  readonly readsAnswer: boolean
  readonly secrets: Readonly<Record<string, string>>
  accept(status: number): boolean
}

/** What can't be told without the answer; `responseurl` is the address of the request when nothing else is said. */
const READ_FROM_ANSWERS = new Set(['response', 'header', 'json', 'xml', 'regex'])

const SAMPLE: UploadObject = {
  key: 'a/b.png',
  size: 1,
  contentType: 'image/png',
  sha256: '',
  stream: () => {
    throw new Error('a sample has no body')
  },
  bytes: async () => Buffer.alloc(0),
}

/** Headers that follow from the body. */
const OWN_HEADERS = ['content-length', 'transfer-encoding', 'connection', 'expect']

/**
 * Reads a description.
 *
 * @throws Error with a sentence that names what is wrong in it
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
  const locate = (option: string, places: string | readonly string[] = []): readonly Template[] =>
    [places].flat().map(place => read(option, asTemplate(option, place), answered))
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
      is: new Set(success.is.map(String)),
    },
    secrets,
  }
  checkUrl(fillTemplate(compiled.url, sent))
  checkHeaders(compiled)
  const redirects = usesLocation(description, compiled.resultUrl) ? [301, 302, 303] : []
  const accept = (status: number) =>
    statuses?.includes(status) ?? ((status >= 200 && status < 300) || redirects.includes(status))
  const names = [...compiled.resultUrl, ...(compiled.success ? [compiled.success.at] : [])].flatMap(listNames)
  const readsAnswer = names.some(name => READ_FROM_ANSWERS.has(name))
  return { ...compiled, readsAnswer, accept }
}

function pairsOf(texts: Texts = {}): [string, string][] {
  return Object.entries(texts).filter((pair): pair is [string, string] => pair[1] !== undefined)
}

function read(option: string, text: string, known: Functions): Template {
  try {
    const template = parseTemplate(text, known)
    fillTemplate(template, known) // finds parameters that make no sense
    return template
  } catch (error) {
    throw new Error(`"${option}" ${messageOf(error)}.`)
  }
}

/** A text without braces is a JSON path; an address without any would be the same for every file. */
function asTemplate(option: string, place: string): string {
  if (place.includes('{')) return place
  if (place.includes('/'))
    throw new Error(
      `"${option}" has no placeholder. Write where the response contains the value, such as data.url.`,
    )
  return `{json:${place}}`
}

function checkUrl(url: string | undefined): void {
  if (!/^https?:\/\/[^/]/i.test(url ?? '') || !URL.canParse(url ?? ''))
    throw new Error('"url" must be an http or https URL.')
}

/** Names are tokens (RFC 9110, section 5.6.2). */
function checkHeaders({ headers, field }: Pick<CompiledHost, 'headers' | 'field'>): void {
  for (const [name] of headers) {
    if (!/^[!#$%&'*+.^_`|~\da-z-]+$/.test(name))
      throw new Error(`"headers" has "${name}", which is not a valid header name.`)
    if (OWN_HEADERS.includes(name) || (field !== undefined && name === 'content-type'))
      throw new Error(`"headers" has "${name}", which is set automatically from the body. Remove it.`)
  }
}

/** Whether a redirect tells the address of the file, and so is a success. */
function usesLocation({ resultUrl }: HostDescription, templates: readonly Template[]): boolean {
  const names = templates.flatMap(listNames)
  return (
    names.includes('responseurl') || [resultUrl].flat().some(place => /\{header:\s*location/i.test(place))
  )
}
