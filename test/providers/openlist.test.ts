import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openlist } from '../../src/providers/openlist.ts'
import { fetchPublic, openHost } from '../helpers/http-exchange.ts'
import { type ContractSetup, describeProvider, objectOf } from '../helpers/provider-contract.ts'
import { startOpenList } from '../servers/openlist.ts'
import { startProxy } from '../servers/proxy.ts'

async function startContract(): Promise<ContractSetup> {
  const server = await startOpenList()
  const proxy = await startProxy([server.port])
  const options = { url: server.url, token: server.token, directory: '/local/ü img/' }
  // Visitors take the straight way.
  const openAt = (port: number) =>
    openHost(openlist, { ...options, url: `http://127.0.0.1:${port}`, urlPrefix: `${server.url}/d` })
  return {
    target: await openHost(openlist, options),
    fetch: fetchPublic,
    secrets: [server.token, 'a-wrong-token'],
    withBadCredentials: () => openHost(openlist, { ...options, token: 'a-wrong-token' }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: server.port, open: openAt },
    without: { largeFiles: 'the server is in this process, and holds files in memory' },
    async close() {
      await proxy.close()
      await server.close()
    },
  }
}

describeProvider('openlist at what its source says', startContract)

const never = () => new AbortController().signal

it('a login that has ended is made anew, and the file is sent once more', async () => {
  const server = await startOpenList()
  onTestFinished(server.close)
  const { url, username, password } = server
  const target = await openHost(openlist, { url, username, password, directory: '/' })
  onTestFinished(() => target.close?.())
  for (const content of ['one', 'two']) {
    const stored = await target.put(objectOf('a.txt', Buffer.from(content)), never())
    expect(stored.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/d\/home\/a\.txt\?sign=/)
    expect((await fetchPublic(stored)).toString()).toBe(content)
    server.forgetLogins()
  }
  const wrong = await openHost(openlist, { url, username, password: 'no', directory: '/' })
  await expect(wrong.check?.(never())).rejects.toThrow(
    /did not log in: username or password is incorrect \(400\)/,
  )
})

it('a file of another size is not stored, and a login that failed is made again', async () => {
  const answers: Record<string, object> = {
    '/api/auth/login': { code: 500, message: 'busy', data: null },
    '/api/me': { code: 200, message: '', data: { username: 'u', base_path: '/', disabled: false } },
    '/api/fs/put': { code: 200, message: '', data: null },
    '/api/fs/get': { code: 200, message: '', data: { size: 1, is_dir: false, sign: '' } },
  }
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify(answers[request.url ?? ''])))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const target = await openHost(openlist, { url, username: 'u', password: 'p', directory: '/' })
  onTestFinished(() => target.close?.())
  const put = () => target.put(objectOf('a.txt', Buffer.from('12')), never())
  await expect(put()).rejects.toMatchObject({
    retryable: true,
    message: expect.stringContaining('busy (500)'),
  })
  answers['/api/auth/login'] = { code: 200, message: '', data: { token: 'session' } }
  await expect(put()).rejects.toMatchObject({
    retryable: true,
    message: expect.stringContaining('the file is not there'),
  })
})

it.each([
  [{ token: 'a', username: 'b', password: 'c' }, /"token", or "username"/],
  [{}, /"token", or "username"/],
  [{ username: 'b' }, /Set both/],
])('openlist with %j is refused', (options, reason) => {
  const config = openlist.config.parse({ url: 'https://list.example.com', directory: '/x', ...options })
  expect(openlist.validate?.(config)).toMatch(reason)
})
