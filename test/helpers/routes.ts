import { expect } from 'vitest'
import { ask, expectEnvelope } from './ask.ts'

type Route = [method: string, target: string, status: number, expected?: Record<string, unknown>]

/** What every route answers to a request without a fitting body. */
export const ROUTES: Route[] = [
  ['GET', '/heartbeat', 200],
  ['POST', '/heartbeat', 200],
  ['HEAD', '/heartbeat', 200],
  ['GET', '/heartbeat/', 200],
  ['GET', '//heartbeat?x=//y', 200],
  ['GET', '/ready', 200, { 'content-type': 'application/json; charset=utf-8' }],
  ['HEAD', '/ready', 200],
  ['GET', '//ready/', 200],
  ['POST', '/ready', 405, { allow: 'GET, HEAD, OPTIONS' }],
  ['OPTIONS', '/ready', 204],
  ['PUT', '/heartbeat', 405, { allow: 'GET, HEAD, POST, OPTIONS' }],
  ['GET', '/', 200, { 'content-type': 'text/html; charset=utf-8' }],
  ['HEAD', '/', 200, { 'content-type': 'text/html; charset=utf-8' }],
  ['GET', '/?a=b', 200],
  ['GET', '//', 200],
  ['POST', '/', 405, { allow: 'GET, HEAD, OPTIONS' }],
  ['GET', '/upload', 200, { 'content-type': 'text/html; charset=utf-8' }],
  ['HEAD', '/upload', 200],
  ['GET', '/upload/', 200],
  ['POST', '/upload', 400],
  ['POST', '/upload/', 400],
  ['POST', '//upload', 400],
  ['POST', '//upload//', 400],
  ['POST', '/upload?x=//y/', 400],
  ['POST', 'http://localhost/upload', 400],
  ['POST', 'http://127.0.0.1:1//upload/?x', 400],
  ['GET', 'http://localhost', 200, { 'content-type': 'text/html; charset=utf-8' }],
  ['GET', 'http://localhost?x', 200],
  ['GET', 'HTTP://localhost/heartbeat', 200],
  ['PUT', '/upload', 400],
  ['PUT', '/upload/', 400],
  ['GET', '/upload/a.png', 404],
  ['DELETE', '/upload/a.png', 404],
  ['DELETE', '/upload', 405, { allow: 'GET, HEAD, POST, PUT, OPTIONS' }],
  ['PATCH', '/upload/', 405, { allow: 'GET, HEAD, POST, PUT, OPTIONS' }],
  ['TRACE', '/upload', 405, { allow: 'GET, HEAD, POST, PUT, OPTIONS' }],
  ['POST', '/Upload', 404],
  ['POST', '/upload/x', 404],
  ['POST', '/uploads', 404],
  ['POST', '/files/Default/a.png', 405, { allow: 'GET, HEAD, OPTIONS' }],
  ['GET', '/files/Default/a.png', 404],
  ['HEAD', '/files/Default/a.png', 404],
  ['GET', '/files', 404],
  ['GET', '/files/Default', 404],
  ['GET', '/files/Default/%zz', 400],
  ['GET', '/files/%', 404],
  ['GET', '/files/%ff/a.png', 400],
  ['GET', '/files/Default/%c0%ae', 400],
  ['GET', '/%', 404],
  ['GET', '/nowhere', 404],
  ['POST', '/nowhere', 404],
  ['HEAD', '/nowhere', 404],
  ['GET', '/heartbeat/x', 404],
  ['GET', '/favicon.ico', 404],
  ['GET', '/../upload', 404],
  ['GET', '/upload%2f', 404],
  ['GET', '/delete', 404],
  ['POST', '/delete', 404],
  ['DELETE', '/delete', 404],
  ['POST', '/delete/', 404],
  ['OPTIONS', '/upload', 204],
  ['OPTIONS', '/heartbeat', 204],
  ['OPTIONS', '/', 204],
  ['OPTIONS', '/files/Default/a.png', 204],
  ['OPTIONS', '/delete', 204],
  ['OPTIONS', '/nowhere', 204],
  ['OPTIONS', '/%zz', 204],
  ['OPTIONS', '*', 204],
  ['OPTIONS', 'http://localhost/upload', 204],
]

export async function expectRoute(
  url: string,
  [method, target, status, expected = {}]: Route,
): Promise<void> {
  const body = method === 'POST' && target.includes('upload') ? { body: 'neither form nor JSON' } : {}
  const reply = await ask(url, method, target, body)
  expect(reply.status, reply.body).toBe(status)
  expect(reply.headers).toMatchObject(expected)
  expectEnvelope(reply)
}
