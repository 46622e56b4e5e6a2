import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { countFiles } from '../../src/store/history.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing, needs } from '../helpers/needs.ts'
import { runServer } from '../helpers/spawn-server.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { startDaemon } from '../servers/daemon.ts'
import { findPostgres, startPostgres } from '../servers/postgres.ts'

const KEY = 'k3y-of-both-servers'
const NOBODY = { uid: 65_534, gid: 65_534 }
const UPLOADS = 200

it('two servers behind PgBouncer in transaction mode, with fewer connections than they open: each upload is stored once', {
  timeout: 60_000,
}, async context => {
  const url = await startBouncer(context)
  const bucket = await startStubBucket()
  const servers = await Promise.all([1, 2].map(() => start(url, bucket.options)))
  const send = async (n: number) =>
    post(`${servers[n % 2]}/upload`, {
      body: formOf({ 'a.bin': randomBytes(500) }),
      headers: { 'X-Upload-Key': KEY, ...(n % 4 > 1 && { 'Idempotency-Key': randomUUID() }) },
    })
  const answers = await Promise.all(Array.from({ length: UPLOADS }, (_, n) => send(n)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(bucket.puts).toHaveLength(UPLOADS)
  const database = openPostgres(url)
  onTestFinished(() => database.close())
  expect(await database.read(db => countFiles(db, {}))).toBe(UPLOADS)
})

/** @returns the URL of the database through PgBouncer */
async function startBouncer(context: TestContext): Promise<string> {
  needs(context, 'pgbouncer', 'pgbouncer')
  if ((await findPostgres()) === undefined) missing(context, 'needs PostgreSQL: apt-get install postgresql')
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const direct = new URL(await postgres.createDatabase('up'))
  const port = await findFreePorts()
  const directory = await makeDirectory()
  const users = join(directory, 'users')
  const settings = join(directory, 'pgbouncer.ini')
  await writeFile(users, `"${direct.username}" "${direct.password}"\n`)
  await writeFile(
    settings,
    `[databases]
up = host=127.0.0.1 port=${direct.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 5
`,
  )
  await chmod(directory, 0o755) // it refuses to run as root
  const account = process.getuid?.() === 0 ? { account: NOBODY } : {}
  const daemon = await startDaemon('pgbouncer', [settings], { port, ...account })
  onTestFinished(daemon.stop)
  direct.port = String(port)
  return direct.href
}

async function start(url: string, bucket: object): Promise<string> {
  const home = await makeDirectory()
  const config = {
    server: { key: KEY },
    auth: { loopbackExempt: false },
    database: { driver: 'postgres', url },
    providers: { s3: { shared: bucket } },
  }
  await writeFile(join(home, 'upload-server.json'), JSON.stringify(config))
  const server = runServer(['--port', '0'], home)
  onTestFinished(async () => {
    server.process.kill('SIGKILL')
    await server.exit
  })
  return server.url
}
