import type { HttpClient, HttpReply } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { formBody } from '../../http/form-body.ts'
import { isObject } from '../../members.ts'
import * as z from '../../packages/zod.ts'
import { Problem } from '../../problem.ts'
import { defineProvider, type Provider, type Stored, type UploadObject } from '../contract.ts'
import { cleanUrl } from './public-url.ts'

/** Maximum size of a response, in bytes. */
const MAX_REPLY_BYTES = 256 * 1024

type Shape = Record<string, z.ZodType>
type Values = Readonly<Record<string, string | number | undefined>>

/** The request that sends one file. Undefined values are omitted. */
export interface HostForm {
  /** Default: POST. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | undefined
  readonly url: string
  readonly query?: Values
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Form fields before the file. */
  readonly fields?: Values
  /** Form field of the file. Undefined: the body is only the bytes of the file. */
  readonly file?: string | undefined
}

/** Where a value is in a response to a URL: a JSON path such as `data.links[0].url`, or a function. */
export type Place = string | ((reply: HttpReply, url: URL) => string | undefined)

/** Places of values in the response of a host. The first place with a value counts. */
export interface HostAnswer {
  /** A place, and the values that a success has there, because many hosts report failures with status 200. */
  readonly success?: readonly [place: Place, ...values: (string | number | boolean)[]] | undefined
  readonly url: Place | readonly Place[]
  readonly deleteUrl?: Place | readonly Place[] | undefined
  readonly error?: Place | readonly Place[] | undefined
  /** Statuses of responses that are read. Default: 200 to 299. */
  readonly statuses?: readonly number[] | undefined
}

/** One request to a host, and its response. */
export type HostExchange = { readonly form: HostForm; readonly answer: HostAnswer }

export interface FormHost<S extends Shape> extends Omit<Provider<z.ZodObject<S>>, 'config' | 'open'> {
  readonly options: S
  form(options: z.output<z.ZodObject<S>>): HostForm
  readonly answer: HostAnswer | ((options: z.output<z.ZodObject<S>>) => HostAnswer)
}

/** Makes the provider of an image host that accepts a form, names files itself and returns their URLs. */
export function formHost<S extends Shape>({ options: shape, form, answer, picgo, ...about }: FormHost<S>) {
  return defineProvider({
    ...about,
    ...(picgo && { picgo: old => ({ ...picgo(old), keyTemplate: '{filename}{extname}' }) }),
    config: z.object(shape),
    open(options, { http }) {
      const exchange = {
        form: form(options),
        answer: typeof answer === 'function' ? answer(options) : answer,
      }
      return {
        traits: { namesFiles: true },
        put: (object, signal) => sendForm(exchange, object, http, signal),
      }
    },
  })
}

/** Sends a file, and returns its URL. */
export async function sendForm(
  { form, answer }: HostExchange,
  object: UploadObject,
  http: HttpClient,
  signal: AbortSignal,
): Promise<Stored> {
  const { method = 'POST', query = {}, headers = {}, fields = {}, file } = form
  const url = new URL(form.url)
  for (const [name, value] of filled(query)) url.searchParams.append(name, value)
  const fileName = object.key.slice(object.key.lastIndexOf('/') + 1)
  const body =
    file === undefined ? object : formBody(filled(fields), [{ field: file, fileName, content: object }])
  const { statuses } = answer
  const request = {
    method,
    url,
    headers: { 'content-type': body.contentType, ...checkHeaders(headers) },
    body,
    maxReplyBytes: MAX_REPLY_BYTES,
    ...(statuses && { accept: (status: number) => statuses.includes(status) }),
    explain(refusal: HttpReply) {
      const reason = find(answer.error, refusal, url)
      return reason === undefined ? undefined : { reason }
    },
  }
  return readAnswer(answer, await http.send(request, signal), url)
}

function filled(values: Values): [name: string, value: string][] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
}

function checkHeaders(headers: Values): Record<string, string> {
  const all = filled(headers)
  // Node also rejects such a value, but only after the body has started.
  const [wrong] = all.find(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) ?? []
  if (wrong === undefined) return Object.fromEntries(all)
  throw new Problem(
    `the header "${wrong}" can't be sent: its value contains a line break or a character outside Latin-1`,
  )
}

/** @throws Problem unless the response is a success that contains an absolute URL */
function readAnswer({ success, url, deleteUrl, error }: HostAnswer, reply: HttpReply, asked: URL): Stored {
  const { host } = asked
  const read = (places: Place | readonly Place[] | undefined) => find(places, reply, asked)
  const fail = (what: string) => new Problem(`${host} ${what}: ${excerpt(read(error) ?? reply.text)}`)
  if (success) {
    const [place, ...values] = success
    if (!values.map(String).includes(read(place) ?? '')) throw fail('did not store it')
  }
  const found = read(url)
  if (found === undefined) throw fail('returned no URL')
  const clean = toCleanUrl(found)
  if (clean === undefined)
    throw new Problem(`${host} returned "${excerpt(found)}", which is not an http or https URL`)
  const deleting = toCleanUrl(read(deleteUrl) ?? '')
  return { url: clean, ...(deleting !== undefined && { deleteUrl: deleting }) }
}

function find(places: Place | readonly Place[] = [], reply: HttpReply, url: URL): string | undefined {
  for (const place of [places].flat()) {
    const value = (typeof place === 'string' ? valueAt(reply, place) : place(reply, url))?.trim()
    if (value) return value
  }
  return undefined
}

/** Returns the value at a path such as `data.links[0].url`. */
export function valueAt({ text }: HttpReply, path: string): string | undefined {
  return findInJson(text, parseJsonPath(path))
}

/** Returns undefined unless it is an absolute http or https URL. */
function toCleanUrl(text: string): string | undefined {
  if (!/^https?:\/\/[^/\s]\S*$/i.test(text.replaceAll(' ', '%20')) || !URL.canParse(text)) return undefined
  return cleanUrl(text)
}

/** Matches one step: a name or an index. Other syntax of JSONPath finds several values, but one is needed. */
const STEP = /\.?([^.[\]'"*?()]+)|\[\s*(?:(\d+)|'([^']*)'|"([^"]*)")\s*\]/y

/**
 * Parses paths such as `data.links.url`, `files[0].url`, `$.data['image url']` and, as PicGo's plugins write it,
 * `0.src`.
 *
 * @throws Error whose message follows the name of the option
 */
export function parseJsonPath(path: string): string[] {
  const text = path.trim().replace(/^\$\.?/, '')
  const steps: string[] = []
  for (STEP.lastIndex = 0; STEP.lastIndex < text.length; ) {
    const at = STEP.lastIndex
    const found = STEP.exec(text)
    if (!found || (at === 0 && found[0].startsWith('.')) || (at > 0 && !/^[.[]/.test(found[0])))
      throw new Error(
        `has the unsupported JSON path "${path}". Use names and indexes only, such as files[0].url`,
      )
    steps.push(found[1]?.trim() ?? found[2] ?? found[3] ?? found[4] ?? '')
  }
  if (steps.length === 0)
    throw new Error('has an empty JSON path. Write where the value is, such as data.url')
  return steps
}

/** Returns the text, number or boolean at a path. Undefined for anything else, and for text that is not JSON, such as a page. */
export function findInJson(text: string, steps: readonly string[]): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const step of steps) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}
