import { once as untilEvent } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, describe, expect, it, type TestContext } from 'vitest'
import { type Body, inMemory } from '../../src/body.ts'
import { once } from '../../src/flow/once.ts'
import { createHttpClient } from '../../src/http/client.ts'
import { formBody } from '../../src/http/form-body.ts'
import { createOutgoing } from '../../src/http/proxy/outgoing.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { needs } from '../helpers/needs.ts'
import { makeCertificate } from '../servers/certificate.ts'
import { SQUID, startSquid } from '../servers/proxies.ts'

const { signal } = new AbortController()
/** tinyproxy takes no such password. */
const LOGIN = ['me', 'p@ss:wörd/?'] as const
const USER = `me:${encodeURIComponent(LOGIN[1])}@`

/** Squid between clients and two servers that say what they got; the same for all tests. */
const share = once(start)
let stop = async () => {}
afterAll(() => stop())

function prepare(context: TestContext): ReturnType<typeof start> {
  needs(context, SQUID, 'squid')
  needs(context, 'openssl', 'openssl')
  return share()
}

async function start() {
  const folder = await mkdtemp(join(tmpdir(), 'upload-server-test-'))
  const { certFile, keyFile } = makeCertificate(folder, 'IP:127.0.0.1')
  let accepted = 0
  const echo: RequestListener = async (request, response) => {
    const { length } = await buffer(request)
    response.end(JSON.stringify({ length, headers: request.headers }))
  }
  const plain = createServer(echo)
  const secure = createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, echo)
  const [http, https] = await Promise.all(
    [plain, secure].map(async server => {
      server.on('connection', () => accepted++).listen(0, '127.0.0.1')
      await untilEvent(server, 'listening')
      return (server.address() as AddressInfo).port
    }),
  )
  const squid = await startSquid(folder, { login: LOGIN, ports: [https ?? 0, 1] })
  stop = async () => {
    for (const server of [plain, secure]) {
      server.closeAllConnections()
      server.close()
    }
    await squid.stop()
    await rm(folder, { recursive: true })
  }
  const outgoingFor = (login: string) =>
    createOutgoing({ proxy: 'none', noProxy: [], caFile: certFile }, {}).with(`http://${login}${squid.host}`)
  return {
    squid,
    urls: [`http://127.0.0.1:${http}`, `https://127.0.0.1:${https}`],
    accepted: () => accepted,
    put(login: string, url: string, size: number, body: Body = inMemory(Buffer.alloc(size))) {
      const client = createHttpClient({ outgoing: outgoingFor(login) })
      const put = () => client.send({ method: 'PUT', url, body }, signal)
      return { put, close: () => client.close() }
    },
  }
}

describe('through squid', () => {
  it('a login of odd characters arrives there and nowhere else, and one tunnel is enough', async context => {
    const { squid, urls, put } = await prepare(context)
    for (const url of urls) {
      const client = put(USER, url, 300_000)
      for (let i = 0; i < 10; i++) {
        const { headers, length } = (await client.put()).json() as { headers: object; length: number }
        expect(length).toBe(300_000)
        expect(headers).not.toHaveProperty('proxy-authorization')
      }
      client.close()
    }
    await expect.poll(squid.tunnels).toBe(1) // written down when it ends
  })

  it('a form arrives whole', async context => {
    const { urls, put } = await prepare(context)
    const content = { ...inMemory(Buffer.alloc(3_000_000)), contentType: 'image/png' }
    const form = formBody([], [{ field: 'file', fileName: 'a.png', content }])
    for (const url of urls) {
      const client = put(USER, url, 0, form)
      expect(await client.put().then(reply => reply.json())).toMatchObject({ length: form.size })
      client.close()
    }
  })

  it.for([10, 3_000_000])(
    'a login that is missing or wrong is told, whatever is sent: %i bytes',
    async (size, context) => {
      const { urls, put, squid, accepted } = await prepare(context)
      const before = accepted()
      for (const [login, what] of [
        ['', 'requires a user name and a password'],
        ['me:wrong@', 'rejected the user name or password'],
      ] as const)
        for (const url of urls) {
          let error = await failureOf(put(login, url, size).put())
          // While a body is on its way its answer may be lost to the end of the connection.
          for (let i = 0; i < 5 && error.message.includes('it closed the connection'); i++)
            error = await failureOf(put(login, url, size).put())
          expect(error.message).toContain(`the proxy "${squid.host}" ${what} (407`)
          expect(error.retryable).toBe(false)
        }
      expect(accepted()).toBe(before)
    },
  )

  it('a port that is forbidden, and a server that is not there, are told apart', async context => {
    const { put, squid } = await prepare(context)
    const tell = async (url: string) => {
      const { message, retryable } = await failureOf(put(USER, url, 10).put())
      return [message.split(`"${squid.host}" `)[1], retryable]
    }
    expect(await tell('https://127.0.0.1:2')).toEqual([
      'refuses to forward 127.0.0.1:2 (403 Forbidden).',
      false,
    ])
    const absent = (what: string) => [`could not forward ${what} (503 Service Unavailable).`, true]
    expect(await tell('https://127.0.0.1:1')).toEqual(absent('127.0.0.1:1'))
    expect(await tell('http://127.0.0.1:1')).toEqual(absent('this'))
  })
})
