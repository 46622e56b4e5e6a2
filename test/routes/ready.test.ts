import { readdir, rm, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
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
import { listen } from '../helpers/listen.ts'
import { startApp } from '../helpers/start-app.ts'
import { closed } from '../helpers/stores.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'

const READY = '{"success":true,"status":"ready"}'
const PATIENT = { timeout: 15_000, interval: 100 }

const statusAt = async (url: string) => (await ask(url, 'GET', '/ready')).status

it('needs no key, and gives no reason to a stranger but the words', async () => {
  const app = await startApp({ config: { server: { key: 'k3y-0f-the-server' } } })
  const headers = { 'X-Forwarded-For': '203.0.113.9', Host: 'img.example.com' }
  expect(await ask(app.url, 'GET', '/ready', { headers })).toMatchObject({ status: 200, body: READY })
  expect(await ask(app.url, 'HEAD', '/ready')).toMatchObject({ status: 200, body: '' })
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
  const remote = { type: 's3', name: 'a', target: {} } as Destination
  const route = createReadyRoute(
    { owner, destinations: [remote], defaultId: undefined, leftOut: [] },
    () => false,
  )
  const { url, close } = await listen(express().get('/ready', route) as RequestListener)
  onTestFinished(close)
  const [statuses, took] = await timed(() => Promise.all(Array.from({ length: 500 }, () => statusAt(url))))
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(beats).toBeLessThanOrEqual(1 + Math.ceil(took / 1000))
})

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const begun = performance.now()
  return [await work(), performance.now() - begun]
}

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
