import { once } from 'node:events'
import { readdir, rm, statfs, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import { expect, it, onTestFinished } from 'vitest'
import { createReadyRoute } from '../../src/routes/ready.ts'
import { createOwner } from '../../src/store/owners.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import type { Destination } from '../../src/uploader/destinations.ts'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { upload } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { mountSmall } from '../helpers/mount-small.ts'
import { missing } from '../helpers/needs.ts'
import { runServer } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { closed } from '../helpers/stores.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { findPostgres, startPostgres } from '../servers/postgres.ts'

const READY = '{"success":true,"status":"ready"}'
const PATIENT = { timeout: 15_000, interval: 100 }

const statusAt = async (url: string) => (await ask(url, 'GET', '/ready')).status

it('needs no key, and gives no reason to a stranger but the words', async () => {
  const app = await startApp({ config: { server: { key: 'k3y-0f-the-server' } } })
  const headers = { 'X-Forwarded-For': '203.0.113.9', Host: 'img.example.com' }
  expect(await ask(app.url, 'GET', '/ready', { headers })).toMatchObject({ status: 200, body: READY })
  expect(await ask(app.url, 'HEAD', '/ready')).toMatchObject({ status: 200, body: '' })
})

it('is not logged, whatever it responds', async context => {
  const disk = join(await makeDirectory(), 'disk')
  await mountSmall(context, disk, '2m')
  const app = await startApp({ config: { database: { path: join(disk, 'store.db') } } })
  expect(await upload(`${app.url}/upload`, { 'a.txt': 'one' })).toMatchObject({ status: 200 })
  const { bavail, bsize } = await statfs(disk)
  await writeFile(join(disk, 'ballast'), Buffer.alloc(bavail * bsize))
  await expect.poll(() => statusAt(app.url), PATIENT).toBe(503)
  const { body } = await ask(app.url, 'GET', '/ready')
  expect(JSON.parse(body)).toMatchObject({
    success: false,
    code: 'database_unavailable',
    message: expect.stringMatching(/^The disk with the database of the server, store\.db, is full/),
  })
  await rm(join(disk, 'ballast'))
  await expect.poll(() => statusAt(app.url), PATIENT).toBe(200)
  expect(app.rawLog()).not.toContain('/ready')
})

it('attack: a flood of checks asks the database once a second', async () => {
  const database = closed(openSqlite(join(await makeDirectory(), 'store.db')))
  let beats = 0
  const owner = createOwner({
    ...database,
    tx(work) {
      beats++
      return database.tx(work)
    },
  })
  const remote = { target: {} } as Destination
  const route = createReadyRoute({ owner, choose: () => remote }, () => false)
  const server = express().get('/ready', route).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [statuses, took] = await timed(() => Promise.all(Array.from({ length: 500 }, () => statusAt(url))))
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(beats).toBeLessThanOrEqual(1 + Math.ceil(took / 1000))
})

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const begun = performance.now()
  return [await work(), performance.now() - begun]
}

it('is 503 while PostgreSQL is stopped or hangs, says why without its address, and is 200 afterwards', {
  timeout: 60_000,
}, async context => {
  if ((await findPostgres()) === undefined) missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const url = await postgres.createDatabase('ready')
  const directory = await makeDirectory()
  await writeFile(
    join(directory, 'upload-server.json'),
    JSON.stringify({ database: { driver: 'postgres', url } }),
  )
  await postgres.halt()
  const server = runServer(['--port', '0'], directory)
  onTestFinished(async () => {
    server.process.kill('SIGKILL')
    await server.exit
  })
  const at = await server.url
  const stopped = await ask(at, 'GET', '/ready')
  expect(stopped).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  expect(JSON.parse(stopped.body)).toMatchObject({
    code: 'database_unavailable',
    message: 'The database of the server does not respond (ECONNREFUSED). Try again in a moment.',
  })
  expect(stopped.body).not.toMatch(/postgres:|127\.0\.0\.1|pgpass/)
  expect((await ask(at, 'GET', '/heartbeat')).status).toBe(200)

  await postgres.resume()
  await expect.poll(() => statusAt(at), PATIENT).toBe(200)
  await postgres.freeze()
  await sleep(1100)
  const [hanging, took] = await timed(() => ask(at, 'GET', '/ready'))
  await postgres.thaw()
  expect(hanging.status).toBe(503)
  expect(JSON.parse(hanging.body).message).toBe('The database of the server does not respond in time.')
  expect(took).toBeLessThan(4900)
  await expect.poll(() => statusAt(at), PATIENT).toBe(200)
})

it('stays 200 while the destination fails, which is so for all servers', async () => {
  const { options } = await startStubBucket()
  const dead = { ...options, endpoint: `http://127.0.0.1:${await findFreePorts()}` }
  const app = await startApp({ config: { limits: { retries: 0 }, providers: { s3: { dead } } } })
  expect((await upload(`${app.url}/upload`, { 'a.txt': 'one' })).status).toBe(502)
  expect(await statusAt(app.url)).toBe(200)
})

it('is 503 while the folder of the default destination is a file, and says what to do, as uploads do', async () => {
  const directory = join(await makeDirectory(), 'pictures')
  await writeFile(directory, 'in the way')
  const app = await startApp({ config: { providers: { local: { Default: { directory, serve: true } } } } })
  const reason =
    /^.* at local\/Default: a file exists where a folder is needed \(ENOTDIR\)\. Remove the file, or use another object key or "directory"\.$/
  expect(await upload(`${app.url}/upload`, { 'a.txt': 'one' })).toMatchObject({
    status: 502,
    message: expect.stringMatching(reason),
  })
  const { status, body } = await ask(app.url, 'GET', '/ready')
  expect([status, JSON.parse(body).message]).toEqual([503, expect.stringMatching(reason)])
  await rm(directory)
  await expect.poll(() => statusAt(app.url), PATIENT).toBe(200)
  expect(await readdir(directory)).toEqual(['.upload-server'])
})
