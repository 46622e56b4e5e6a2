import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, type TestContext } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { type Answer, list, post } from '../helpers/form.ts'
import { needs, needsRoot } from '../helpers/needs.ts'
import { runProgram } from '../helpers/run-program.ts'
import { startApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
let count = 0

/** A network of two machines: this one, and one in a namespace of its own, joined by a cable that nobody else sees. */
interface Network {
  readonly here: string
  readonly there: string
  /** Gives this machine another address. */
  addAddress(address: string): void
  /** Runs curl on the other machine. */
  curl(...args: string[]): Promise<Answer & { body: string }>
}

async function makeNetwork(context: TestContext): Promise<Network> {
  needs(context, 'ip', 'iproute2')
  needs(context, 'curl', 'curl')
  needsRoot(context, 'it makes network namespaces')
  const id = `${process.pid % 60_000}x${count++}`
  const [space, cable, plug] = [`upload-${id}`, `ua${id}`, `ub${id}`]
  const block = 256 * (process.pid % 256) + 4 * (count % 64)
  const [here, there] = [1, 2].map(host => `10.213.${block >> 8}.${(block & 255) + host}`) as [string, string]
  const ip = (...args: string[]) => void execFileSync('ip', args, { stdio: 'pipe' })
  ip('netns', 'add', space)
  context.onTestFinished(() => {
    ip('netns', 'del', space)
    // The cable goes with the namespace, but only a moment later.
    try {
      ip('link', 'del', cable)
    } catch {}
  })
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', plug, 'netns', space)
  ip('addr', 'add', `${here}/30`, 'dev', cable)
  ip('link', 'set', cable, 'up')
  ip('-n', space, 'addr', 'add', `${there}/30`, 'dev', plug)
  ip('-n', space, 'link', 'set', plug, 'up')
  ip('-n', space, 'link', 'set', 'lo', 'up')
  return {
    here,
    there,
    addAddress: address =>
      ip('addr', 'add', address, 'dev', cable, ...(address.includes(':') ? ['nodad'] : [])),
    async curl(...args) {
      const inside = ['netns', 'exec', space, 'curl', '-q', '-sS', '-i', '--max-time', '20', '--noproxy', '*']
      const { stdout, stderr } = await runProgram('ip', [...inside, ...args])
      const [head = '', body = ''] = stdout.split(/\r\n\r\n(.*)/s)
      if (head === '') throw new Error(stderr)
      const [line = '', ...lines] = head.split('\r\n')
      const headers = new Headers(lines.map(field => field.split(/: (.*)/, 2) as [string, string]))
      const json = body.startsWith('{') ? (JSON.parse(body) as Answer) : ({} as Answer)
      return { ...json, body, headers, status: Number(line.split(' ')[1]) }
    },
  }
}

/** A server on all addresses, and how the other machine reaches it. */
async function serve(context: TestContext, server: object) {
  const network = await makeNetwork(context)
  const app = await startApp({ config: { server: { host: '0.0.0.0', ...server } } })
  return { app, network, url: `http://${network.here}:${new URL(app.url).port}` }
}

it('a caller from another machine needs the key, whatever it says of itself, and gets a link that it can fetch', async context => {
  const { app, network, url } = await serve(context, { key: KEY, trustProxy: ['uniquelocal'] })
  const path = join(app.directory, 'a.txt')
  await writeFile(path, 'hello')
  const form = ['-F', `file=@${path}`, `${url}/upload`]
  const wrong = ['X-Upload-Key: wrong', 'Authorization: Bearer wrong', 'X-PicGo-Secret: wrong']
  const local = ['Host: localhost', 'X-Forwarded-For: 127.0.0.1', 'Origin: app://obsidian.md']
  for (const header of ['X-A: b', ...wrong, ...local]) {
    const answer = await network.curl('-H', header, ...form)
    expectFailure(answer, 401, 'unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  }
  const answer = await network.curl(`-HX-Upload-Key: ${KEY}`, ...form)
  expect(answer).toMatchObject({
    status: 200,
    success: true,
    result: [expect.stringMatching(`^${url}/files/`)],
  })
  expect(await network.curl(String(answer.result[0]))).toMatchObject({ status: 200, body: 'hello' })
  const line = { caller: 'server', admittedBy: 'key', address: network.there }
  expect(app.log.find(one => one['stored'])).toMatchObject(line)
})

it('attack: a caller with a key has the server fetch from its own public addresses', async context => {
  const { app, network } = await serve(context, { key: KEY, host: '::' })
  const [one, other] = [process.pid % 250, count % 250]
  const hosts = [`44.128.${one}.${other}`, `[2a0f:ffff:${one}::${other}]`]
  for (const host of hosts) network.addAddress(host.replace(/[[\]]/g, ''))
  const { port } = new URL(app.url)
  const entries = hosts.map(host => `http://${host}:${port}/heartbeat`)
  const upload = (headers: Record<string, string>) =>
    post(`${app.url}/upload`, { ...list(...entries), headers })
  const key = { 'X-Upload-Key': KEY }
  const refused = await upload({ ...key, 'X-Forwarded-For': '203.0.113.9' })
  expectFailure(refused, 403, 'source_forbidden')
  expect(refused.errors.map(error => error.code)).toEqual(hosts.map(() => 'source_forbidden'))
  expect((await upload({})).result).toHaveLength(2) // a program of this machine reaches them by itself
})
