import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { startDaemon } from '../servers/daemon.ts'
import { ask } from './ask.ts'
import type { TestApp } from './start-app.ts'

const ALIVE = '{"success":true,"result":"alive"}'

/** An example with the places of this machine in it. */
export async function fill(file: URL, replacements: readonly (readonly [string, string])[]): Promise<string> {
  let example = await readFile(file, 'utf8')
  for (const [wanted, replacement] of replacements) {
    expect(example).toContain(wanted)
    example = example.replace(wanted, replacement)
  }
  return example
}

/** Runs nginx with the servers of an example until the test is over; everything that it writes lies in the folder. */
export async function runNginx(
  directory: string,
  servers: string,
  port: number,
  account = 'root',
): Promise<void> {
  await mkdir(join(directory, 'tmp'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path tmp/${name};`,
  )
  const user = userInfo().uid === 0 ? `user ${account};` : ''
  const http = `access_log off; ${temporary.join(' ')}\n${servers}\n`
  await writeFile(
    join(directory, 'nginx.conf'),
    `${user} daemon off; pid nginx.pid; events {} http { ${http} }\n`,
  )
  const args = ['-p', directory, '-c', 'nginx.conf', '-e', 'error.log']
  const daemon = await startDaemon('nginx', args, { port })
  onTestFinished(daemon.stop)
}

/** The body of an answer 200, in whatever form: which operation the proxy makes of it is open. Failures count as alive. */
async function send(
  url: string,
  method: string,
  path: string,
  headers: object,
  body: string,
): Promise<string> {
  const { hostname, port } = new URL(url)
  const call = request({ host: hostname, port, method, path, headers: { ...headers }, agent: false }).end(
    body,
  )
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const said = await text(response)
  return response.statusCode === 200 ? said : ALIVE
}

/**
 * That whoever lacks the password reaches no upload through places that need none.
 *
 * @param right headers of somebody who may upload
 */
export async function expectNoWayAround(
  app: TestApp,
  url: string,
  right: Record<string, string>,
): Promise<void> {
  const targets = [
    '/upload/ //upload /files/../upload /files/..%2fupload /files/%2e%2e/upload /files/%252e%252e/upload',
    '/files/..;/upload /files/..\\upload /files//upload /links/../upload /links/..%2fupload',
    '/links/%2e%2e/upload /heartbeat/../upload /heartbeat/..%2fupload /heartbeat%2f..%2fupload',
    '/upload/..%2fheartbeat /upload%2f..%2fheartbeat /upload/../heartbeat /upload?/../heartbeat',
    '/upload#/../heartbeat /upload;/../heartbeat /heartbeat%3f/upload /with-key/upload',
    '/with-key/../upload /with-key/..%2fupload /with-key//upload /with-key/files/..%2fupload',
    '/files/../with-key/upload',
  ].flatMap(line => line.split(' '))
  const body = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
  // What reaches the server all the same is refused by it; no answer is that of an upload.
  for (const target of targets)
    for (const method of ['POST', 'PUT'])
      expect.soft(await send(url, method, target, headers, body), `${method} ${target}`).toBe(ALIVE)
  expect(await app.files()).toEqual([])
  const allowed = await ask(url, 'POST', '/upload', {
    headers: { ...right, ...headers },
    body,
  })
  expect(allowed.status).toBe(200)
}
