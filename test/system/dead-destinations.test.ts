import { expect, it } from 'vitest'
import { destinationsAt, startWith } from '../helpers/destinations.ts'
import { formOf, list, post, upload } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'
import { serveRaw } from '../uploader/sources/servers.ts'

/** A server that takes connections and says nothing. */
const startDead = () => serveRaw(socket => void socket.resume())

// What a failure says, and that a time limit holds for all attempts, is proven for each protocol in the contract suite.

const LOGIN = {
  host: '127.0.0.1',
  username: 'me',
  password: 'p4ssw0rd-of-mine',
  urlPrefix: 'http://x.example',
}

it.each(['http', 'socks5'])('a silent proxy is named as the proxy, by %s', async scheme => {
  const dead = await startDead()
  const more = { proxy: `${scheme}://127.0.0.1:${dead.port}` }
  const providers = {
    ...destinationsAt('http://127.0.0.1:1', more),
    ftp: { Default: { ...LOGIN, ...more, secure: 'none' } },
    sftp: { Default: { ...LOGIN, ...more } },
  }
  const app = await startWith(providers, 500)
  const types = Object.keys(providers)
  const answers = await Promise.all(
    types.map(type => upload(`${app.url}/upload?picbed=${type}`, { 'a.png': 'a' })),
  )
  for (const [i, type] of types.entries()) {
    expect(answers[i], type).toMatchObject({ status: 504, code: 'destination_timeout' })
    expect(answers[i]?.message, type).toContain(`through the proxy "127.0.0.1:${dead.port}"`)
  }
})

it('a dead destination held all places, and healthy ones waited for them', async () => {
  const { s3 } = destinationsAt((await startDead()).origin)
  const app = await startApp({
    config: {
      default: 's3/Default',
      providers: { s3, local: { alive: { directory: 'alive', serve: true } } },
      limits: { perDestination: { concurrent: 2, queued: 1 }, destinationTimeout: '60000ms' },
      shutdown: { grace: '0ms' },
    },
  })
  const client = new AbortController()
  const send = (signal?: AbortSignal) =>
    post(`${app.url}/upload`, { body: formOf({ 'a.txt': 'a' }), ...(signal && { signal }) })
  const stuck = [1, 2, 3].map(() => send(client.signal).catch(() => 'left'))
  await expect.poll(async () => (await Promise.race([send(), later()]))?.status).toBe(503)
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
  const wanted = list(...Array.from({ length: 20 }, (_, n) => `${dead.origin}/${n}.png`), 'data:,alive')
  const stuck = [1, 2, 3].map(() =>
    fetch(`${app.url}/upload`, { method: 'POST', ...wanted, signal: client.signal }).catch(() => 'left'),
  )
  // Two at a time fetch, the third one waits, and another one is turned away.
  await expect.poll(() => dead.connections()).toBe(8)
  await expect
    .poll(async () => (await Promise.race([post(`${app.url}/upload`, wanted), later()]))?.status)
    .toBe(503)
  for (let n = 0; n < 5; n++)
    expect(await upload(`${app.url}/upload`, { 'a.txt': `${n}` })).toMatchObject({ status: 200 })
  client.abort()
  expect(await Promise.all(stuck)).toEqual(['left', 'left', 'left'])
})

const later = () => new Promise<undefined>(resolve => setTimeout(resolve, 200, undefined))
