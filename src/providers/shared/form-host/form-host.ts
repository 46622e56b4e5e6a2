import type { HttpReply } from '../../../http/client.ts'
import { excerpt } from '../../../http/excerpt.ts'
import { formBody } from '../../../http/form-body.ts'
import { createMask } from '../../../mask.ts'
import * as z from '../../../packages/zod.ts'
import { Problem } from '../../../problem.ts'
import { defineProvider, type Provider, type Stored, type UploadObject } from '../../contract.ts'
import { checkHeader, hideSecrets, MAX_REPLY_BYTES, toCleanUrl } from './index.ts'
import { findInJson, parseJsonPath } from './json-path.ts'

type Shape = Record<string, z.ZodType>
type Values = Readonly<Record<string, string | number | undefined>>

/** The form that sends one file. Undefined values are left out. */
export interface HostForm {
  readonly url: string
  readonly query?: Values
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Form fields before the file. */
  readonly fields?: Values
  /** Form field of the file. */
  readonly file: string
  /** Credentials in the form. They are masked in messages, because hosts repeat them. */
  readonly secrets?: readonly (string | undefined)[]
}

/** Where a value is in a response: a JSON path such as `data.links[0].url`, or a function. */
export type Place = string | ((reply: HttpReply) => string | undefined)

/** What the response of a host has where. Of several places, the first with a value counts. */
export interface HostAnswer {
  /** A path, and the value that a success has there, because many hosts report failures with status 200. */
  readonly success?: readonly [path: string, value: string | number | boolean]
  readonly url: Place | readonly Place[]
  readonly deleteUrl?: Place
  readonly error?: Place | readonly Place[]
  /** Statuses of responses that are read. Default: 200 to 299. */
  readonly statuses?: readonly number[]
}

export interface FormHost<S extends Shape> extends Omit<Provider<z.ZodObject<S>>, 'config' | 'open'> {
  readonly options: S
  form(options: z.output<z.ZodObject<S>>): HostForm
  readonly answer: HostAnswer | ((options: z.output<z.ZodObject<S>>) => HostAnswer)
}

/** Makes the provider of an image host that accepts a form, names files itself and returns their URLs. */
export function formHost<S extends Shape>({ options: shape, form, answer, ...about }: FormHost<S>) {
  return defineProvider({
    ...about,
    config: z.object(shape),
    open(options, { http }) {
      const { url, query = {}, headers = {}, fields = {}, file, secrets = [] } = form(options)
      const places = typeof answer === 'function' ? answer(options) : answer
      const mask = createMask(secrets.filter(secret => secret !== undefined))
      const address = new URL(url)
      for (const [name, value] of filled(query)) address.searchParams.append(name, value)
      return {
        traits: { namesFiles: true },
        async put(object: UploadObject, signal: AbortSignal) {
          const fileName = object.key.slice(object.key.lastIndexOf('/') + 1)
          const body = formBody(filled(fields), [{ field: file, fileName, content: object }])
          const request = {
            method: 'POST',
            url: address,
            headers: { 'content-type': body.contentType, ...checkHeaders(headers) },
            body,
            maxReplyBytes: MAX_REPLY_BYTES,
            ...(places.statuses && {
              accept: (status: number) => places.statuses?.includes(status) ?? false,
            }),
            explain(refusal: HttpReply) {
              const reason = find(places.error, refusal)
              return reason === undefined ? undefined : { reason }
            },
          }
          try {
            return readAnswer(places, await http.send(request, signal), address.host)
          } catch (error) {
            signal.throwIfAborted()
            throw hideSecrets(error, mask)
          }
        },
      }
    },
  })
}

function filled(values: Values): [name: string, value: string][] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
}

function checkHeaders(headers: Values): Record<string, string> {
  return Object.fromEntries(filled(headers).map(([name, value]) => [name, checkHeader(name, value)]))
}

/** @throws Problem unless the response is a success that contains an absolute URL */
function readAnswer({ success, url, deleteUrl, error }: HostAnswer, reply: HttpReply, host: string): Stored {
  const fail = (what: string) => new Problem(`${host} ${what}: ${excerpt(find(error, reply) ?? reply.text)}`)
  if (success && find(success[0], reply) !== String(success[1])) throw fail('did not store it')
  const found = find(url, reply)
  if (found === undefined) throw fail('returned no URL')
  const clean = toCleanUrl(found)
  if (clean === undefined)
    throw new Problem(`${host} returned "${excerpt(found)}", which is not an http or https URL`)
  const deleting = toCleanUrl(find(deleteUrl, reply) ?? '')
  return { url: clean, ...(deleting !== undefined && { deleteUrl: deleting }) }
}

function find(places: Place | readonly Place[] = [], reply: HttpReply): string | undefined {
  for (const place of [places].flat()) {
    const value = (typeof place === 'string' ? valueAt(reply, place) : place(reply))?.trim()
    if (value) return value
  }
  return undefined
}

/** Returns the value at a path such as `data.links[0].url`. Undefined also for a page or other text. */
export function valueAt({ text }: HttpReply, path: string): string | undefined {
  try {
    return findInJson(JSON.parse(text), parseJsonPath(path))
  } catch {
    return undefined
  }
}
