import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { expectDescribed } from './contract.ts'

export interface Question {
  headers?: OutgoingHttpHeaders
  body?: string | Uint8Array
  /** Unix socket instead of the host of the address. */
  socketPath?: string
}

export interface Reply {
  method: string
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/**
 * Sends a request whose target goes out exactly as it is written here, on a connection of its own. The answer is held to
 * the description of the API.
 */
export async function ask(
  url: string,
  method: string,
  target: string,
  question: Question = {},
): Promise<Reply> {
  const { headers, body, socketPath } = question
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const call = request({ host, port, method, path: target, headers, agent: false, socketPath })
  call.end(body)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const reply = {
    method,
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: await text(response),
  }
  // A proxy in between has answers of its own.
  if (reply.headers['x-request-id'])
    expectDescribed({ ...reply, target, contentType: response.headers['content-type'] })
  return reply
}

/** What every answer has, whatever was asked. */
export function expectEnvelope({ method, status, headers, body }: Reply): void {
  expect(headers['access-control-allow-origin']).toBe('*')
  expect(headers['x-request-id']).toMatch(/^[\w.:/+=-]{1,128}$/)
  if (status >= 400) expect(headers['content-type']).toBe('application/json; charset=utf-8')
  if (method === 'HEAD' || status === 204 || status === 304) expect(body).toBe('')
  else if (status >= 400) expectFailureBody(body, String(headers['x-request-id']))
  else expect(body).not.toBe('')
}

function expectFailureBody(body: string, requestId: string): void {
  const { success, message, msg, code, requestId: id } = JSON.parse(body)
  expect({ success, requestId: id }).toEqual({ success: false, requestId })
  expect(msg).toBe(message)
  expect(message).toMatch(/^\S.*\.$/s)
  expect(message).not.toMatch(/https?:\/\//i)
  expect(code).toMatch(/^[a-z_]+$/)
}
