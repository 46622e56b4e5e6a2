import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { upload } from '../../helpers/form.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { missing } from '../../helpers/needs.ts'
import { runServer } from '../../helpers/spawn-server.ts'
import { startApp } from '../../helpers/start-app.ts'
import { findPostgres, startPostgres } from '../../servers/postgres.ts'

const PATIENT = { timeout: 15_000, interval: 100 }

const statusAt = async (url: string) => (await ask(url, 'GET', '/ready')).status

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
  const hanging = await eventually(async () => {
    const reply = await ask(at, 'GET', '/ready')
    expect(reply.status).toBe(503)
    return reply
  })
  await postgres.thaw()
  expect(JSON.parse(hanging.body).message).toBe('The database of the server does not respond in time.')
  await expect.poll(() => statusAt(at), PATIENT).toBe(200)
})
