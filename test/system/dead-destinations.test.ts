import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
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

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
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

it.each(['nowhere.invalid', 'closed'])('a failure names file, destination and remedy: %s', async where => {
  const types = Object.keys(PROVIDERS)
  const port = where === 'closed' ? await closedPort() : 9
  const host = where === 'closed' ? '127.0.0.1' : where
  const options = { host, port, url: `http://${host}:${port}` }
  const app = await startApp({
    config: {
      default: 's3/away',
      providers: Object.fromEntries(types.map(type => [type, { away: PROVIDERS[type]?.(options) }])),
      limits: { retries: 0 },
    },
  })
  const answers = await Promise.all(
    types.map(type => upload(`${app.url}/upload?picbed=${type}`, { 'a name.png': 'a' })),
  )
  for (const [i, type] of types.entries()) {
    const { status, code, message } = answers[i] as unknown as Record<string, unknown>
    expect({ status, code }, type).toEqual({ status: 502, code: 'destination_failed' })
    for (const named of ['a name', `${type}/away`, host]) expect(message, type).toContain(named)
    expect(message, type).toMatch(where === 'closed' ? /refuses connections/ : /hostname.* does not exist/)
    expect(message, type).toMatch(/\. (?:Check|Try again, or check) "\S+"/)
  }
})

it.each(['http', 'socks5'])('a silent proxy is named as the proxy, by %s', async scheme => {
  const types = Object.keys(PROVIDERS)
  const dead = await startDead()
  const proxy = `${scheme}://${dead.host}:${dead.port}`
  const providers = types.map(type => [type, { far: { ...PROVIDERS[type]?.(dead), proxy } }])
  const limits = { destinationTimeout: '1500ms', retries: 0, perDestination: { concurrent: types.length } }
  const app = await startApp({
    config: { default: 's3/far', providers: Object.fromEntries(providers), limits },
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

describe('limits.destinationTimeout', () => {
  it('is how long a file may take, wherever it goes: one that hung took four times as long', async () => {
    const types = Object.keys(PROVIDERS)
    const dead = new Map<string, Dead>()
    for (const type of types) dead.set(type, await startDead())
    const app = await startApp({
      config: {
        default: 's3/dead',
        providers: Object.fromEntries(
          types.map(type => [type, { dead: PROVIDERS[type]?.(dead.get(type)!) }]),
        ),
        limits: { destinationTimeout: '500ms', retries: 9, perDestination: { concurrent: types.length } },
      },
    })
    const large = Buffer.alloc(6_000_000, 'x')
    for (const content of ['small', large]) {
      const before = types.map(type => dead.get(type)!.accepted())
      const answers = await Promise.all(
        types.map(type => upload(`${app.url}/upload?picbed=${type}`, { 'a.bin': content })),
      )
      for (const [i, type] of types.entries()) {
        expect(answers[i], type).toMatchObject({ status: 504, code: 'destination_timeout' })
        // One that hangs has no time left for another attempt; further connections clean up, and look what has arrived.
        expect(dead.get(type)!.accepted() - before[i]!, type).toBeLessThan(9)
      }
    }
    await expect.poll(app.files).toEqual([])
  })

  it('counts looking for what is there already', async () => {
    const dead = await startDead()
    const app = await startApp({
      config: {
        providers: { s3: { dead: { ...PROVIDERS['s3']?.(dead), onConflict: 'error' } } },
        limits: { destinationTimeout: '300ms', retries: 0 },
      },
    })
    expect(await upload(`${app.url}/upload`, { 'a.txt': 'a' })).toMatchObject({ code: 'destination_timeout' })
  })

  it('is given to the fallback, too', async () => {
    const dead = await startDead()
    const app = await startApp({
      config: {
        default: 's3/dead',
        providers: {
          s3: { dead: { ...PROVIDERS['s3']?.(dead), fallback: 'local/alive' } },
          local: { alive: { directory: 'alive', serve: true } },
        },
        limits: { destinationTimeout: '1500ms' },
      },
    })
    const answer = await upload(`${app.url}/upload`, { 'a.txt': 'a' })
    expect(answer).toMatchObject({ status: 200, items: [{ destination: 'local/alive' }] })
  })
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
