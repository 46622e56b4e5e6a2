import { UploadError } from '../../../errors.ts'
import {
  createHttpClient,
  excerpt,
  type HttpOptions,
  type HttpReply,
  type HttpRequest,
} from '../../../http/client.ts'
import { createMask, type Mask } from '../../../mask.ts'
import * as z from '../../../packages/zod.ts'
import type { ProviderDeps, Stored, Target, UploadObject } from '../../contract.ts'
import { cleanUrl } from '../public-url.ts'
import { compileHost, type Host, type HostDescription } from './description.ts'
import { makeMultipartBody, makeRawBody, type StreamedBody } from './multipart-body.ts'
import { answerFunctions, type EscapeContext, objectFunctions } from './placeholders.ts'
import { type Functions, render, type Template } from './template.ts'

export type { HostDescription } from './description.ts'
export { literal } from './template.ts'

/** Most of an answer that is looked at, in bytes. */
const MAX_REPLY_BYTES = 256 * 1024

/** An address as an option of a preset. */
export function httpAddress() {
  return z.url({ protocol: /^https?$/, error: 'must be an http or https address' })
}

/**
 * A destination that is told files by HTTP and answers where they are. Most name them by themselves, so that nothing is replaced.
 *
 * @throws Error with a sentence when the description is wrong; presets have none that is
 */
export function createHost(description: HostDescription, options: HttpOptions, deps: ProviderDeps): Target {
  const host = compileHost(description)
  const client = createHttpClient(options, deps)
  const mask = createMask(Object.values(host.secrets))
  return {
    namesFiles: host.readsAnswer && host.method === 'POST',
    async put(object, signal) {
      const { request, url } = makeRequest(host, object)
      try {
        return readAnswer(host, object, await client.send(request, signal), url)
      } catch (error) {
        signal.throwIfAborted()
        throw hideSecrets(error, mask)
      }
    },
    async close() {
      client.close()
    },
  }
}

/** What is wrong with a description, as a sentence; undefined when nothing is. */
export function findFault(description: HostDescription): string | undefined {
  try {
    compileHost(description)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function makeRequest(host: Host, object: UploadObject): { request: HttpRequest; url: URL } {
  const fill = (template: Template, context: EscapeContext) =>
    render(template, objectFunctions(object, host.secrets, context)) ?? ''
  const url = new URL(fill(host.url, 'url'))
  for (const [name, value] of host.query) url.searchParams.append(name, fill(value, 'text'))
  const body = makeBody(host, object, fill)
  const headers: Record<string, string> = { 'content-type': body.contentType }
  for (const [name, value] of host.headers) headers[name] = checkHeader(name, fill(value, 'header'))
  const request = {
    method: host.method,
    url,
    headers: { ...headers, 'content-length': String(body.length) },
    body: body.chunks,
    accept: host.accept,
    maxReplyBytes: MAX_REPLY_BYTES,
    explain: (refusal: HttpReply) => find(host.errorMessage, answerFunctions({ reply: refusal, url })),
  }
  return { request, url }
}

function makeBody(
  { field, fields }: Host,
  object: UploadObject,
  fill: (template: Template, context: EscapeContext) => string,
): StreamedBody {
  if (field === undefined) return makeRawBody(object)
  const fileName = object.key.slice(object.key.lastIndexOf('/') + 1)
  const texts = fields.map(([name, value]) => [name, fill(value, 'text')] as const)
  return makeMultipartBody(object, texts, { field, fileName })
}

/** Node refuses such a value too, but only once the body is on its way. */
function checkHeader(name: string, value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value
  throw new UploadError(
    'delivery_failed',
    `The header "${name}" can't be sent: its value has a line break or a character that is not Latin-1.`,
  )
}

/** @throws UploadError `delivery_failed` unless the answer is a success with an absolute address in it */
function readAnswer(host: Host, object: UploadObject, reply: HttpReply, url: URL): Stored {
  const functions = {
    ...objectFunctions(object, host.secrets, 'url'),
    ...answerFunctions({ reply, url }),
  }
  const { success } = host
  if (!host.readsAnswer && reply.status < 300 && isPage(reply))
    throw failure(
      `${url.host} answered with a page, not as if it had stored "${object.key}": ${excerpt(reply.text)}`,
    )
  if (success && !success.is.has(render(success.at, functions) ?? '')) {
    const said = find(host.errorMessage, functions) ?? reply.text
    throw failure(`${url.host} did not store "${object.key}": ${excerpt(said)}`)
  }
  const address = find(host.resultUrl, functions)
  if (address === undefined) {
    const said = find(host.errorMessage, functions) ?? reply.text
    throw failure(`${url.host} answered without an address of "${object.key}": ${excerpt(said)}`)
  }
  const resultUrl = toCleanUrl(address)
  if (resultUrl === undefined) {
    throw failure(
      `${url.host} answered "${excerpt(address)}", which is no http or https address of "${object.key}".`,
    )
  }
  const deleteUrl = toCleanUrl(find(host.deleteUrl, functions) ?? '')
  return { url: resultUrl, ...(deleteUrl !== undefined && { deleteUrl }) }
}

/** Such as one that asks for a login. */
function isPage({ headers, text }: HttpReply): boolean {
  return (
    /^text\/html\b/i.test(headers['content-type'] ?? '') ||
    /^\s*<(?:!doctype|html)\b/i.test(text.slice(0, 1000))
  )
}

/** Not retryable: the host has answered, and would answer the same again. */
function failure(message: string): UploadError {
  return new UploadError('delivery_failed', message)
}

/** The first place that holds something. */
function find(places: readonly Template[], functions: Functions): string | undefined {
  for (const place of places) {
    const text = render(place, functions)?.trim()
    if (text) return text
  }
  return undefined
}

/** Undefined unless it is an absolute http or https address. */
function toCleanUrl(text: string): string | undefined {
  if (!/^https?:\/\/[^/\s]\S*$/i.test(text.replaceAll(' ', '%20')) || !URL.canParse(text)) return undefined
  return cleanUrl(text)
}

/** Hosts repeat keys in their answers, and addresses hold them. */
function hideSecrets(error: unknown, mask: Mask): unknown {
  if (!(error instanceof UploadError)) return error
  const { code, message, retryable, retryAfterS, cause } = error
  const reason = cause instanceof Error ? cause.message : undefined
  if (mask(message) === message && mask(reason ?? '') === (reason ?? '')) return error
  return new UploadError(code, mask(message), {
    retryable,
    ...(reason !== undefined && { cause: new Error(mask(reason)) }),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}
