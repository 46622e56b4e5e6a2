import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { list, post, upload } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'

/** A server that takes connections and says nothing. */
async function startDead(): Promise<{ host: string; port: number; url: string; accepted(): number }> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer(socket => {
    accepted++
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { host: '127.0.0.1', port, url: `http://127.0.0.1:${port}`, accepted: () => accepted }
}

type Dead = Awaited<ReturnType<typeof startDead>>
const account = { username: 'me', password: 'p4ssw0rd-of-mine' }
const forge = { repo: 'me/pictures', branch: 'main', token: 't0ken-of-mine' }

const PROVIDERS: Record<string, (dead: Pick<Dead, 'host' | 'port' | 'url'>) => Record<string, unknown>> = {
  s3: ({ url }) => ({
    ...{ bucket: 'b', endpoint: url, region: 'r', accessKeyId: 'a', secretAccessKey: 's3cr3t-of-mine' },
    ...{ urlPrefix: url, addressingStyle: 'path', multipartThreshold: '5MB' },
  }),
  webdav: ({ url }) => ({ url, ...account }),
  ftp: ({ host, port, url }) => ({ host, port, ...account, secure: 'none', urlPrefix: url }),
  sftp: ({ host, port, url }) => ({ host, port, ...account, urlPrefix: url }),
  github: ({ url }) => ({ ...forge, apiUrl: url }),
  gitea: ({ url }) => ({ ...forge, apiUrl: `${url}/api/v1` }),
  gitlab: ({ url }) => ({ ...forge, apiUrl: `${url}/api/v4` }),
  http: ({ url }) => ({ url, resultUrl: 'url' }),
  azure: ({ url }) => ({
    ...{ account: 'mine', container: 'pictures' },
    accountKey: Buffer.alloc(64, 'k').toString('base64'),
    endpoint: url,
  }),
  upyun: ({ url }) => ({
    bucket: 'pictures',
    operator: 'me',
    password: 'p4ssw0rd-of-mine',
    endpoint: url,
    urlPrefix: url,
  }),
  lsky: ({ url }) => ({ url, token: 't0ken-of-mine' }),
  chevereto: ({ url }) => ({ url, apiKey: 'k3y-of-mine' }),
}

// What a failure says, and that a time limit holds for all attempts, is proven for each protocol in the contract suite.

it.each(['http', 'socks5'])('a silent proxy is named as the proxy, by %s', async scheme => {
  const types = Object.keys(PROVIDERS)
  const dead = await startDead()
  const proxy = `${scheme}://${dead.host}:${dead.port}`
  const providers = types.map(type => [type, { far: { ...PROVIDERS[type]?.(dead), proxy } }])
  const limits = { destinationTimeout: '500ms', retries: 0, perDestination: { concurrent: types.length } }
  const shutdown = { grace: '0ms' }
  const app = await startApp({
    config: { default: 's3/far', providers: Object.fromEntries(providers), limits, shutdown },
  })
  const answers = await Promise.all(
    types.map(type => upload(`${app.url}/upload?picbed=${type}`, { 'a.png': 'a' })),
  )
  for (const [i, type] of types.entries()) {
    expect(answers[i], type).toMatchObject({ status: 504, code: 'destination_timeout' })
    const said = `through the proxy "127.0.0.1:${dead.port}"`
    expect((answers[i] as unknown as { message: string }).message, type).toContain(said)
  }
})

it('a dead destination held all places, and healthy ones waited for them', async () => {
  const dead = await startDead()
  const app = await startApp({
    config: {
      default: 's3/dead',
      providers: {
        s3: { dead: PROVIDERS['s3']?.(dead) },
        local: { alive: { directory: 'alive', serve: true } },
      },
      limits: { perDestination: { concurrent: 2, queued: 1 }, destinationTimeout: '60000ms' },
      shutdown: { grace: '0ms' },
    },
  })
  const client = new AbortController()
  const body = () => {
    const form = new FormData()
    form.append('file', new Blob(['a']), 'a.txt')
    return form
  }
  const stuck = [1, 2, 3].map(() =>
    fetch(`${app.url}/upload`, { method: 'POST', body: body(), signal: client.signal }).catch(() => 'left'),
  )
  const refused = () => upload(`${app.url}/upload`, { 'b.txt': 'b' })
  await expect.poll(async () => (await Promise.race([refused(), later()]))?.status).toBe(503)
  for (let n = 0; n < 5; n++) {
    const answer = await upload(`${app.url}/upload?configName=alive`, { 'a.txt': `${n}` })
    expect(answer.status).toBe(200)
  }
  client.abort()
  expect(await Promise.all(stuck)).toEqual(['left', 'left', 'left'])
})

it('addresses at which nobody answers held all places of a destination, and files waited for them', async () => {
  const dead = await startDead()
  const app = await startApp({
    config: {
      providers: { local: { alive: { directory: 'alive', serve: true } } },
      limits: { perDestination: { concurrent: 2, queued: 1 } },
    },
  })
  const client = new AbortController()
  const wanted = list(...Array.from({ length: 20 }, (_, n) => `${dead.url}/${n}.png`), 'data:,alive')
  const stuck = [1, 2, 3].map(() =>
    fetch(`${app.url}/upload`, { method: 'POST', ...wanted, signal: client.signal }).catch(() => 'left'),
  )
  // Two at a time fetch, the third one waits, and another one is turned away.
  await expect.poll(() => dead.accepted()).toBe(8)
  await expect
    .poll(async () => (await Promise.race([post(`${app.url}/upload`, wanted), later()]))?.status)
    .toBe(503)
  for (let n = 0; n < 5; n++)
    expect(await upload(`${app.url}/upload`, { 'a.txt': `${n}` })).toMatchObject({ status: 200 })
  client.abort()
  expect(await Promise.all(stuck)).toEqual(['left', 'left', 'left'])
})

const later = () => new Promise<undefined>(resolve => setTimeout(resolve, 200, undefined))
