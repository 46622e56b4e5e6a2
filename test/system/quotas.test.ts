import { randomUUID } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openPostgres } from '../../src/store/postgres.ts'
import { sql } from '../../src/store/sql.ts'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { formOf, post } from '../helpers/form.ts'
import { missing } from '../helpers/needs.ts'
import { runServer } from '../helpers/spawn-server.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../servers/postgres.ts'

const KEY = 'k3y-with-a-quota'

const config = (key: object, more: object = {}) => ({
  auth: { loopbackExempt: false, keys: [{ name: 'ci', key: KEY, ...key }] },
  ...more,
})

const send = (url: string, files: Record<string, string | Uint8Array>, headers: object = {}) =>
  post(`${url}/upload`, { body: formOf(files), headers: { 'X-Upload-Key': KEY, ...headers } })

const named = (count: number, content = 'x') =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}.txt`, `${content}${n}`]))

describe('three servers on one PostgreSQL', () => {
  let postgres: PostgresServer | undefined
  beforeAll(async () => {
    if ((await findPostgres()) !== undefined) postgres = await startPostgres()
  })
  afterAll(() => postgres?.stop())

  it('store exactly what a quota has room for, and what a killed one had reserved is free again', async context => {
    if (!postgres) missing(context, 'needs PostgreSQL: apt-get install postgresql')
    const url = await postgres.createDatabase(`db${randomUUID().replaceAll('-', '')}`)
    const directory = await makeDirectory()
    const files = join(directory, 'files')
    // The second destination never ends, so what is sent there stays reserved.
    const never = { command: ['sleep', '600'], url: 'https://x.example/{key}' }
    const whole = {
      ...config({ quota: { files: 200, per: '1d' } }),
      database: { driver: 'postgres', url },
      default: 'local/Default',
      providers: { local: { Default: { directory: files, serve: true } }, command: { never } },
    }
    const start = async () => {
      const home = await makeDirectory()
      await writeFile(join(home, 'upload-server.json'), JSON.stringify(whole))
      const server = runServer(['--port', '0'], home)
      onTestFinished(async () => {
        server.process.kill('SIGKILL')
        await server.exit
      })
      return { server, url: await server.url }
    }
    const all = await Promise.all([start(), start(), start()])
    const stuck = Array.from({ length: 5 }, () =>
      post(`${all[0]!.url}/upload?destination=command/never`, {
        body: formOf(named(4)),
        headers: { 'X-Upload-Key': KEY },
      }).catch(() => undefined),
    )
    const database = openPostgres(url)
    onTestFinished(() => database.close())
    /** How many files are stored or reserved. */
    const used = async () => {
      const rows = await database.read(db => db.all(sql`select files from quotas`))
      return (rows as { files: unknown }[]).reduce((sum, { files }) => sum + Number(files), 0)
    }
    await eventually(async () => expect(await used()).toBe(20))
    // 64 clients, each with a few uploads, more than the quota has room for.
    const client = async (n: number) => {
      const statuses: number[] = []
      for (let i = 0; i < 4; i++)
        statuses.push((await send(all[n % 3]!.url, { [`${n}-${i}.txt`]: randomUUID() })).status)
      return statuses
    }
    const statuses = (await Promise.all(Array.from({ length: 64 }, (_, n) => client(n)))).flat()
    expect(statuses.filter(status => status === 200)).toHaveLength(180)
    expect(statuses.filter(status => status === 429)).toHaveLength(64 * 4 - 180)
    expect(await names(files)).toHaveLength(180)
    all[0]!.server.process.kill('SIGKILL')
    await Promise.all(stuck)
    await eventually(async () => expect(await used()).toBe(180))
    const more = await Promise.all(
      Array.from({ length: 30 }, (_, n) => send(all[1 + (n % 2)]!.url, named(1, randomUUID()))),
    )
    expect(more.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(await names(files)).toHaveLength(200)
    const last = await ask(all[1]!.url, 'POST', '/upload', { headers: { 'X-Upload-Key': KEY } })
    expect(last.headers['ratelimit']).toMatch(/^"files";r=\d+;/) // as far as this server knows
  }, 90_000)
})

async function names(directory: string): Promise<string[]> {
  const all = await readdir(directory, { recursive: true, withFileTypes: true })
  return all.filter(one => one.isFile() && !one.parentPath.includes('.upload-server')).map(one => one.name)
}
