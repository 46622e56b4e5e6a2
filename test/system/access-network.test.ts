import { execFileSync } from 'node:child_process'
import { expect, it, type TestContext } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { needs, needsRoot } from '../helpers/needs.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'

/** Gives this machine addresses that are not its loopback ones, until the test is over. */
function addAddresses(context: TestContext, addresses: readonly string[]): void {
  needs(context, 'ip', 'iproute2')
  needsRoot(context, 'it gives this machine another IP address')
  const ip = (change: string, address: string) =>
    void execFileSync('ip', ['addr', change, address, 'dev', 'lo'], { stdio: 'pipe' })
  for (const address of addresses) {
    ip('add', address)
    context.onTestFinished(() => ip('del', address))
  }
}

/** No other run of this test has the same. */
const one = process.pid % 250

it('a caller from another machine needs the key, whatever it says of itself, and gets a link that it can fetch', async context => {
  const here = `10.213.${one}.1`
  addAddresses(context, [`${here}/32`])
  const app = await startApp({
    config: { server: { host: '0.0.0.0', key: KEY, trustProxy: ['uniquelocal'] } },
  })
  const url = `http://${here}:${new URL(app.url).port}`
  const body = '{"list":["data:,hello"]}'
  const wrong = ['X-Upload-Key: wrong', 'Authorization: Bearer wrong', 'X-PicGo-Secret: wrong']
  const local = ['Host: localhost', 'X-Forwarded-For: 127.0.0.1', 'Origin: app://obsidian.md']
  for (const header of ['X-A: b', ...wrong, ...local]) {
    const answer = await sendUpload(url, { headers: [header], body })
    expectFailure(answer, 401, 'unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  }
  const { status, result } = await sendUpload(url, { headers: [`X-Upload-Key: ${KEY}`], body })
  expect({ status, result }).toEqual({ status: 200, result: [expect.stringMatching(`^${url}/files/`)] })
  const { pathname } = new URL(String(result[0]))
  expect(String((await sendRaw(url, { line: `GET ${pathname} HTTP/1.1` })).body)).toBe('hello')
  const line = { caller: 'server', admittedBy: 'key', address: here }
  expect(app.log.find(entry => entry['stored'])).toMatchObject(line)
})

it('attack: a caller with a key has the server fetch from its own public addresses', async context => {
  const [four, six] = [`44.128.${one}.1`, `2a0f:ffff:${one}::1`]
  addAddresses(context, [`${four}/32`, `${six}/128`])
  const app = await startApp({ config: { server: { key: KEY, host: '::' } } })
  const { port } = new URL(app.url)
  const entries = [four, `[${six}]`].map(host => `http://${host}:${port}/heartbeat`)
  const upload = (headers: Record<string, string>) =>
    post(`${app.url}/upload`, { ...list(...entries), headers })
  const refused = await upload({ 'X-Upload-Key': KEY, 'X-Forwarded-For': '203.0.113.9' })
  expectFailure(refused, 403, 'source_forbidden')
  expect(refused.errors.map(error => error.code)).toEqual(['source_forbidden', 'source_forbidden'])
  expect((await upload({})).result).toHaveLength(2) // a program of this machine reaches them by itself
})
