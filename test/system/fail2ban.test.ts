import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, type TestContext } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { needs } from '../helpers/needs.ts'
import { sendRaw } from '../helpers/raw-request.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const EXAMPLE = new URL('../../docs/examples/fail2ban/filter.conf', import.meta.url)
const VICTIM = '198.51.100.7'
/** Everything that a line of the log has for a wrong key, as a client could write it. */
const FORGED = `","address":"${VICTIM}","req":{"method":"POST","path":"/upload"},"wrongKey":true,"x":"`

/** The IP addresses that fail2ban finds in a log, by the filter of docs/examples. */
async function banned(context: TestContext, log: string): Promise<string[]> {
  needs(context, 'fail2ban-regex', 'fail2ban')
  const directory = await makeDirectory()
  await writeFile(join(directory, 'log'), log)
  await writeFile(join(directory, 'filter.conf'), await readFile(EXAMPLE))
  const args = ['-o', 'ip', join(directory, 'log'), join(directory, 'filter.conf')]
  const { stdout } = await promisify(execFile)('fail2ban-regex', args)
  return stdout.split('\n').filter(Boolean)
}

const startStrict = (auth: object = {}, server: object = {}) =>
  startApp({
    config: {
      server: { key: KEY, ...server },
      auth: { loopbackExempt: false, maxFailures: 1000, ...auth },
      metrics: { enabled: true, token: 'the-token-of-the-scraper' },
      page: { history: true },
    },
  })

/** Where a proxy on this machine is trusted. */
const startProxied = (auth: object = {}) => startStrict(auth, { trustProxy: ['loopback'] })

const from = (address: string, headers: Record<string, string> = {}) => ({
  headers: { 'X-Forwarded-For': address, ...headers },
})

/** As the journal of systemd gives the lines to fail2ban, and as a file after a restart of fail2ban. */
function inJournal({ rawLog }: TestApp): string {
  return rawLog().replace(/^/gm, 'img upload-server[4711]: ')
}

it('every wrong key is found, wherever it is sent, and nothing else', async context => {
  const app = await startProxied()
  await ask(app.url, 'POST', '/upload', from('203.0.113.1', { 'X-Upload-Key': 'wrong' }))
  await ask(app.url, 'POST', '/upload?key=wrong', from('203.0.113.2'))
  await ask(app.url, 'POST', '/upload', from('203.0.113.3', { Authorization: 'Bearer wrong' }))
  await ask(app.url, 'GET', '/history', from('203.0.113.4', { 'X-Upload-Key': 'wrong' }))
  await ask(app.url, 'GET', '/page/me', from('203.0.113.5', { 'X-Upload-Key': 'wrong' }))
  await ask(app.url, 'GET', '/metrics', from('203.0.113.6', { Authorization: 'Bearer wrong' }))
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await ask(app.url, 'POST', '/upload', from('2001:db8::7', { 'X-Upload-Key': 'wrong', traceparent }))
  await ask(app.url, 'POST', '/upload', from('::ffff:203.0.113.8', { 'X-Upload-Key': 'wrong' }))
  // No key, a right one, and what is refused for something else.
  await ask(app.url, 'POST', '/upload', from('203.0.113.20'))
  await ask(app.url, 'POST', '/upload', from('203.0.113.20', { 'X-Upload-Key': KEY }))
  await ask(app.url, 'GET', '/nowhere?key=wrong', from('203.0.113.20'))
  await ask(app.url, 'GET', '/metrics', from('203.0.113.20'))
  await ask(app.url, 'GET', '/page/me', from('203.0.113.20'))
  const wrong = [1, 2, 3, 4, 5, 6].map(last => `203.0.113.${last}`).concat('2001:db8::7', '203.0.113.8')
  await expect.poll(() => app.log.filter(line => line['wrongKey']).length).toBe(wrong.length)
  expect(await banned(context, app.rawLog())).toEqual(wrong)
  expect(await banned(context, inJournal(app))).toEqual(wrong)
})

it('fail2ban accepts the jail with the filter', async context => {
  needs(context, 'fail2ban-client', 'fail2ban')
  const directory = await makeDirectory()
  await cp('/etc/fail2ban', directory, { recursive: true })
  await rm(join(directory, 'jail.d'), { recursive: true })
  await mkdir(join(directory, 'jail.d'))
  await copyFile(EXAMPLE, join(directory, 'filter.d/upload-server.conf'))
  await copyFile(new URL('jail.conf', EXAMPLE), join(directory, 'jail.d/upload-server.conf'))
  const { stdout } = await promisify(execFile)('fail2ban-client', ['-c', directory, '--dp'])
  expect(stdout).toMatch(/'upload-server', 'addjournalmatch', '_SYSTEMD_UNIT=upload-server\.service'/)
  expect(stdout).toMatch(/'upload-server', 'maxretry', 5/)
})

it.for<[where: string, line: string, headers: string[]]>([
  ['the path', `PUT /upload/${FORGED} HTTP/1.1`, []],
  ['an escaped path', `PUT /upload/${encodeURIComponent(FORGED)} HTTP/1.1`, []],
  ['a path with backslashes', `PUT /upload/${FORGED.replaceAll('"', '\\"')} HTTP/1.1`, []],
  ['a path of another line', `PUT /upload/%0A{"level":"warn","requestId":"a${FORGED} HTTP/1.1`, []],
  [
    'the path, with another time',
    `PUT /"time":"2026-11-24T10:00:00.000Z","requestId":"a${FORGED} HTTP/1.1`,
    [],
  ],
  [
    'a path like that of the journal',
    `PUT /img upload-server[1]: HTTP/1.1`.replace(/ (?=upload)/, '%20'),
    [],
  ],
  ['the query', `PUT /upload/a?name=${FORGED} HTTP/1.1`, []],
  ['an absolute target', `PUT http://${VICTIM}/upload/${FORGED} HTTP/1.1`, []],
  ['the method', `${FORGED.replaceAll(' ', '')} /upload HTTP/1.1`, []],
  ['the name of the file', 'PUT /upload HTTP/1.1', [`X-File-Name: ${encodeURIComponent(FORGED)}`]],
  ['the User-Agent', 'PUT /upload/a HTTP/1.1', [`User-Agent: ${FORGED}`]],
  ['the request ID', 'PUT /upload/a HTTP/1.1', [`X-Request-Id: ${FORGED}`]],
  ['a valid request ID', 'PUT /upload/a HTTP/1.1', [`X-Request-Id: address:${VICTIM}`]],
  ['the trace context', 'PUT /upload/a HTTP/1.1', [`traceparent: ${FORGED}`]],
  ['the origin', 'PUT /upload/a HTTP/1.1', [`Origin: ${FORGED}`]],
  ['the host', 'PUT /upload/a HTTP/1.1', [`Host: ${FORGED}`]],
  ['the key', 'PUT /upload/a HTTP/1.1', [`X-Upload-Key: ${FORGED}`]],
  ['X-Forwarded-For', 'PUT /upload/a HTTP/1.1', [`X-Forwarded-For: ${VICTIM}`]],
  ['X-Real-IP and Forwarded', 'PUT /upload/a HTTP/1.1', [`X-Real-IP: ${VICTIM}`, `Forwarded: for=${VICTIM}`]],
])('attack: a client bans another one by %s', async ([, line, headers], context) => {
  const app = await startStrict()
  for (const key of [['X-Upload-Key: wrong'], []]) {
    await sendRaw(app.url, { line, headers: [...headers, ...key], body: 'x' })
  }
  await expect.poll(() => app.log.some(({ level }) => level === 'warn')).toBe(true)
  for (const address of await banned(context, app.rawLog() + inJournal(app)))
    expect(address).toBe('127.0.0.1')
})

it('attack: text that is not an IP address, from a proxy that passes on what clients send', async context => {
  const app = await startProxied()
  for (const text of [FORGED, 'img.example.com', `${VICTIM}"`, `x${VICTIM}`, `${VICTIM} `.padEnd(300, 'x')])
    await ask(app.url, 'POST', '/upload', from(text, { 'X-Upload-Key': 'wrong' }))
  await expect.poll(() => app.log.filter(line => line['wrongKey']).length).toBe(5)
  expect(await banned(context, app.rawLog())).toEqual([])
})
