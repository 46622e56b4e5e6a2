import { messageOf } from '../../../errors.ts'
import type { HttpClient, HttpReply, HttpRequest } from '../../../http/client.ts'
import { excerpt } from '../../../http/excerpt.ts'
import { formBody, type TypedBody } from '../../../http/form-body.ts'
import { createMask, type Mask } from '../../../mask.ts'
import { Problem } from '../../../problem.ts'
import type { Stored, Target, UploadObject } from '../../contract.ts'
import { cleanUrl } from '../public-url.ts'
import { type CompiledHost, compileHost, type HostDescription } from './description.ts'
import { answerFunctions, type EscapeContext, objectFunctions } from './placeholders.ts'
import { type Functions, fillTemplate, type Template } from './template.ts'

export type { HostDescription } from './description.ts'
export { literal } from './template.ts'

/** Maximum size of a response, in bytes. */
export const MAX_REPLY_BYTES = 256 * 1024

/**
 * Creates a destination that accepts files over HTTP and returns their URLs. Most such hosts name files themselves, so nothing is
 * replaced.
 *
 * @throws Error with a sentence if the description is invalid
 */
export function createHost(description: HostDescription, http: HttpClient): Target {
  const host = compileHost(description)
  const mask = createMask(Object.values(host.secrets))
  return {
    traits: { namesFiles: host.readsAnswer && host.method === 'POST' },
    async put(object, signal) {
      const { request, url } = makeRequest(host, object)
      try {
        return readAnswer(host, object, await http.send(request, signal), url)
      } catch (error) {
        signal.throwIfAborted()
        throw hideSecrets(error, mask)
      }
    },
  }
}

/** Returns a sentence about an invalid description, or undefined. */
export function findDescriptionFault(description: HostDescription): string | undefined {
  try {
    compileHost(description)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function makeRequest(host: CompiledHost, object: UploadObject): { request: HttpRequest; url: URL } {
  const plain = objectFunctions(object, host.secrets, 'text')
  const fill = (template: Template, context: EscapeContext) =>
    fillTemplate(template, objectFunctions(object, host.secrets, context), plain) ?? ''
  const url = new URL(fill(host.url, 'url'))
  for (const [name, value] of host.query) url.searchParams.append(name, fill(value, 'text'))
  const body = makeBody(host, object, fill)
  const headers: Record<string, string> = { 'content-type': body.contentType }
  for (const [name, value] of host.headers) headers[name] = checkHeader(name, fill(value, 'header'))
  const request = {
    method: host.method,
    url,
    headers,
    body,
    accept: host.accept,
    maxReplyBytes: MAX_REPLY_BYTES,
    explain(refusal: HttpReply) {
      const reason = find(host.errorMessage, answerFunctions({ reply: refusal, url }))
      return reason === undefined ? undefined : { reason }
    },
  }
  return { request, url }
}

function makeBody(
  { field, fields }: CompiledHost,
  object: UploadObject,
  fill: (template: Template, context: EscapeContext) => string,
): TypedBody {
  if (field === undefined) return object
  const fileName = object.key.slice(object.key.lastIndexOf('/') + 1)
  const texts = fields.map(([name, value]) => [name, fill(value, 'text')] as const)
  return formBody(texts, [{ field, fileName, content: object }])
}

/** Node also rejects such a value, but only after the body has started. */
export function checkHeader(name: string, value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value
  throw new Problem(
    `the header "${name}" can't be sent: its value contains a line break or a character outside Latin-1`,
  )
}

/** @throws Problem unless the response is a success that contains an absolute URL */
function readAnswer(host: CompiledHost, object: UploadObject, reply: HttpReply, url: URL): Stored {
  const answered = answerFunctions({ reply, url })
  const functions = { ...objectFunctions(object, host.secrets, 'url'), ...answered }
  const plain = { ...objectFunctions(object, host.secrets, 'text'), ...answered }
  const { success } = host
  if (!host.readsAnswer && reply.status < 300 && isPage(reply))
    throw new Problem(`${url.host} returned an HTML page instead of the result: ${excerpt(reply.text)}`)
  if (success && !success.is.has(fillTemplate(success.at, functions, plain) ?? '')) {
    const reason = find(host.errorMessage, functions, plain) ?? reply.text
    throw new Problem(`${url.host} did not store it: ${excerpt(reason)}`)
  }
  const address = find(host.resultUrl, functions, plain)
  if (address === undefined) {
    const reason = find(host.errorMessage, functions, plain) ?? reply.text
    throw new Problem(`${url.host} returned no URL: ${excerpt(reason)}`)
  }
  const resultUrl = toCleanUrl(address)
  if (resultUrl === undefined) {
    throw new Problem(`${url.host} returned "${excerpt(address)}", which is not an http or https URL`)
  }
  const deleteUrl = toCleanUrl(find(host.deleteUrl, functions, plain) ?? '')
  return { url: resultUrl, ...(deleteUrl !== undefined && { deleteUrl }) }
}

/** Detects an HTML page, such as a login page. */
function isPage({ headers, text }: HttpReply): boolean {
  return (
    /^text\/html\b/i.test(headers['content-type'] ?? '') ||
    /^\s*<(?:!doctype|html)\b/i.test(text.slice(0, 1000))
  )
}

/** Returns the first template with a value. */
function find(places: readonly Template[], functions: Functions, plain?: Functions): string | undefined {
  for (const place of places) {
    const text = fillTemplate(place, functions, plain)?.trim()
    if (text) return text
  }
  return undefined
}

/** Returns undefined unless it is an absolute http or https URL. */
export function toCleanUrl(text: string): string | undefined {
  if (!/^https?:\/\/[^/\s]\S*$/i.test(text.replaceAll(' ', '%20')) || !URL.canParse(text)) return undefined
  return cleanUrl(text)
}

/** Masks secrets, because hosts repeat them in responses and URLs contain them. */
export function hideSecrets(error: unknown, mask: Mask): unknown {
  if (!(error instanceof Problem)) return error
  const { why, advice, code, retryable, retryAfterS, cause } = error
  const reason = cause instanceof Error ? cause.message : undefined
  if (mask(why) === why && mask(reason ?? '') === (reason ?? '')) return error
  return new Problem(mask(why), {
    advice,
    code,
    retryable,
    ...(reason !== undefined && { cause: new Error(mask(reason)) }),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}
