import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { list, post } from '../../helpers/form.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'

describe('a key is replaced by a reload', () => {
  const withKey = (key: string, more: object = {}) => ({
    server: { port: 0, key, trustProxy: ['loopback'], watch: false },
    auth: { loopbackExempt: false, maxFailures: 3 },
    ...more,
  })

  async function start() {
    const directory = await makeDirectory()
    const write = (key: string, more?: object) =>
      writeFile(join(directory, 'upload-server.json'), JSON.stringify(withKey(key, more)))
    await write('old-key')
    const server = await spawnServer([], { directory })
    const url = await server.url
    let reloads = 0
    return {
      url,
      /** Sends SIGHUP and waits until the log says that it is done. */
      async reload(key: string, more?: object) {
        await write(key, more)
        server.process.kill('SIGHUP')
        reloads++
        await vi.waitUntil(
          () => server.lines.filter(line => line.includes('Configuration reloaded')).length === reloads,
          10_000,
        )
      },
      async statusOf(key: string, address = '203.0.113.9') {
        const headers = { 'X-Upload-Key': key, 'X-Forwarded-For': address }
        return (await post(`${url}/upload`, { ...list('data:,hello'), headers })).status
      },
    }
  }

  /** A form that is admitted, and not yet whole. */
  async function beginForm(url: string, key: string, agent: Agent) {
    const headers = {
      'X-Upload-Key': key,
      'Content-Type': 'multipart/form-data; boundary=b',
      Expect: '100-continue',
    }
    const sent = request(`${url}/upload`, { method: 'POST', agent, headers })
    const answered = once(sent, 'response')
    sent.flushHeaders()
    await once(sent, 'continue')
    sent.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhel')
    return {
      async finish() {
        sent.end('lo\r\n--b--\r\n')
        const [response] = (await answered) as [IncomingMessage]
        return { status: response.statusCode, body: await text(response) }
      },
    }
  }

  it('attack: the old key goes on over connections that were open, while what it had begun ends well', async () => {
    const server = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    onTestFinished(() => agent.destroy())
    const running = await Promise.all(
      Array.from({ length: 8 }, () => beginForm(server.url, 'old-key', agent)),
    )
    await server.reload('new-key')
    expect([await server.statusOf('old-key'), await server.statusOf('new-key')]).toEqual([401, 200])
    for (const form of running) expect(await form.finish()).toMatchObject({ status: 200 })
    const again = request(`${server.url}/upload`, {
      method: 'POST',
      agent,
      headers: { 'X-Upload-Key': 'old-key' },
    }).end('{"list":["data:,hello"]}')
    const [answer] = (await once(again, 'response')) as [IncomingMessage]
    answer.resume()
    expect([again.reusedSocket, answer.statusCode]).toEqual([true, 401])
  })

  it('attack: somebody guesses on after each reload', async () => {
    const server = await start()
    expect([await server.statusOf('guess-1'), await server.statusOf('guess-2')]).toEqual([401, 401])
    await server.reload('new-key')
    expect([await server.statusOf('guess-3'), await server.statusOf('new-key')]).toEqual([401, 429])
    await server.reload('newer-key')
    expect(await server.statusOf('newer-key')).toBe(429)
    expect(await server.statusOf('newer-key', '203.0.113.10')).toBe(200)
    // Whoever runs the server may let them in again.
    await server.reload('newer-key', { auth: { loopbackExempt: false, maxFailures: 30 } })
    expect(await server.statusOf('newer-key')).toBe(200)
  })
})
