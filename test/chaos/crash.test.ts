import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { runBuilt } from '../cli/run-cli.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { formOf } from '../helpers/form.ts'
import { runServer, type SpawnedServer } from '../helpers/spawn-server.ts'
import { openSqlite } from '../helpers/sqlite.ts'

/** CRASH_ROUNDS=200 npx vitest run test/chaos/crash.test.ts */
const ROUNDS = Number(process.env['CRASH_ROUNDS'] ?? 12)
const CLIENTS = 6
const SIZES = [40, 40, 30_000, 200_000, 3_000_000]

/** An upload whose process ended: it is reported by a later one, or repeated by its client. */
const INTERRUPTED = "state = 'failed' and problem = 'The process ended during the upload.'"

/** What a client sent, and what it was told. */
interface Sent {
  readonly bytes: Buffer
  readonly sha256: string
  /** Half of the clients send a key, and repeat the request when they get no answer. */
  readonly key: string | undefined
  /** Path of the link. */
  path?: string
}

it(
  `keeps its word through ${ROUNDS} kill -9`,
  async () => {
    const directory = await makeDirectory()
    await configure(directory)
    const reported = new Set<string>()
    const sent: Sent[] = []
    let last: Sent[] = []
    let early = 0
    for (let round = 0; round < ROUNDS; round++) {
      // Also while it recovers from the last one.
      for (; randomInt(4) === 0; early++) await killEarly(directory, reported)
      const { server, url } = await start(directory)
      await checkAfterStart(directory, server, reported)
      await checkAnswers(url, last)
      last = await uploadUntilKilled(server, url)
      sent.push(...last)
    }
    const { server, url } = await start(directory)
    await checkAfterStart(directory, server, reported)
    await checkAnswers(url, last)
    await checkHistory(directory, sent, reported)
    server.process.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(await temporaryFiles(directory)).toEqual([])
    console.log(
      `${ROUNDS} kills and ${early} at the start: ${sent.length} requests, ${sent.filter(one => one.path).length} links, ${reported.size} interrupted`,
    )
  },
  60_000 + ROUNDS * 6000,
)

async function configure(directory: string): Promise<void> {
  await writeFile(
    join(directory, 'upload-server.json'),
    JSON.stringify({
      keyTemplate: '{uuid}{extname}',
      providers: { local: { Default: { directory: 'files', serve: true } } },
      finalization: { hooks: [{ name: 'reads', command: ['grep', '-q', '"files"'] }] },
    }),
  )
}

/** It may have told of what an earlier one left: the last of that, perhaps, before it was written down. */
async function killEarly(directory: string, reported: Set<string>): Promise<void> {
  const server = runServer(['--port', '0'], directory)
  await Promise.race([server.url.then(() => sleep(randomInt(100))), sleep(randomInt(1000))])
  server.process.kill('SIGKILL')
  await server.exit
  for (const line of reportsOf(server)) reported.add(String(line['jobId']))
}

async function start(directory: string): Promise<{ server: SpawnedServer; url: string }> {
  const server = runServer(['--port', '0'], directory)
  onTestFinished(() => void server.process.kill('SIGKILL'))
  return { server, url: await server.url }
}

async function uploadUntilKilled(server: SpawnedServer, url: string): Promise<Sent[]> {
  const sent: Sent[] = []
  let isOver = false
  let answered = (_status: number) => {}
  const firstAnswer = new Promise(resolve => {
    answered = resolve
  })
  const client = async (number: number) => {
    while (!isOver) {
      const one = newSent(SIZES[randomInt(SIZES.length)] ?? 0, number % 2 === 1)
      sent.push(one)
      await send(url, one).then(answered, () => {})
    }
  }
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number))
  if (randomInt(10) < 7) await firstAnswer
  await sleep(randomInt(400))
  server.process.kill('SIGKILL')
  isOver = true
  expect(await server.exit).toBe('SIGKILL')
  await Promise.all(clients)
  return sent
}

function newSent(size: number, hasKey: boolean): Sent {
  const bytes = Buffer.concat([randomBytes(32), Buffer.alloc(size, 'x')])
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { bytes, sha256, key: hasKey ? randomUUID() : undefined }
}

async function send(url: string, one: Sent): Promise<number> {
  const headers = one.key ? { 'Idempotency-Key': one.key } : undefined
  const response = await fetch(`${url}/upload`, {
    method: 'POST',
    body: formOf({ 'a.bin': one.bytes }),
    ...(headers && { headers }),
    signal: AbortSignal.timeout(60_000),
  })
  const answer = (await response.json()) as { result?: string[] }
  if (response.status === 200) one.path = new URL(String(answer.result?.[0])).pathname
  return response.status
}

/** Nothing temporary is left, the database is sound, and what was cut off is reported. */
async function checkAfterStart(
  directory: string,
  server: SpawnedServer,
  reported: Set<string>,
): Promise<void> {
  await eventually(async () => expect(await temporaryFiles(directory)).toEqual([]))
  const uploading = () => query(directory, "select id from uploads where state = 'uploading'")
  await eventually(async () => expect(await uploading()).toEqual([]))
  for (const row of await query(directory, 'pragma integrity_check')) {
    expect(row).toEqual({ integrity_check: 'ok' })
  }
  // The server creates the tables in its first round, which may not be over yet.
  const interrupted = await eventually(() => query(directory, `select id from uploads where ${INTERRUPTED}`))
  const all = interrupted.map(row => String(row['id'])).sort()
  const told = () => reportsOf(server).map(line => String(line['jobId']))
  await eventually(() =>
    expect([...new Set([...reported, ...told()])].sort(), 'each is reported').toEqual(all),
  )
  expect(new Set(told()).size, 'by one server once').toBe(told().length)
  for (const line of reportsOf(server)) {
    expect(line).toMatchObject({ destination: 'local/Default', origins: ['a.bin'], caller: 'loopback' })
  }
  for (const id of all) reported.add(id)
}

function reportsOf(server: SpawnedServer): Record<string, unknown>[] {
  return server.lines
    .filter(line => line.endsWith('}')) // a kill may cut the last one
    .map(line => JSON.parse(line))
    .filter(line => String(line.msg).startsWith('An upload was interrupted'))
}

/** Every link works, and a repeated request gets its answer. */
async function checkAnswers(url: string, sent: readonly Sent[]): Promise<void> {
  await Promise.all(
    sent.map(async one => {
      if (one.key && !one.path) expect(await send(url, one), 'a repetition is answered').toBe(200)
      if (!one.path) return
      const response = await fetch(url + one.path)
      expect(response.status, one.path).toBe(200)
      expect(one.bytes.equals(Buffer.from(await response.arrayBuffer())), one.path).toBe(true)
    }),
  )
}

/** The history knows each file once. A file that it does not know is of an upload that was reported as interrupted. */
async function checkHistory(
  directory: string,
  sent: readonly Sent[],
  reported: ReadonlySet<string>,
): Promise<void> {
  const { code, stdout } = await runBuilt(['history', '--json', '--limit', '1000000'], { cwd: directory })
  expect(code).toBe(0)
  const entries = JSON.parse(stdout) as { sha256: string; url: string; key: string }[]
  const byHash = new Map(entries.map(entry => [entry.sha256, entry]))
  expect(byHash.size, 'no file is in the history twice').toBe(entries.length)
  for (const one of sent) {
    if (one.path) expect(new URL(String(byHash.get(one.sha256)?.url)).pathname).toBe(one.path)
    if (one.key) expect(one.path).toBeDefined()
  }
  const known = new Set(entries.map(entry => entry.key))
  const files = (await readdir(join(directory, 'files'))).filter(name => name !== '.upload-server')
  expect([...known].filter(key => !files.includes(key))).toEqual([])
  expect(files.filter(name => !known.has(name)).length).toBeLessThanOrEqual(reported.size)
}

async function temporaryFiles(directory: string): Promise<string[]> {
  const folders = ['upload-server/tmp', 'files/.upload-server'].map(path => join(directory, path))
  const found = folders.map(folder => readdir(folder, { recursive: true }).catch(() => []))
  const beside = await readdir(join(directory, 'files')).catch(() => [])
  return [(await Promise.all(found)).flat(), beside.filter(name => /^\.(?!upload-server$)/.test(name))].flat()
}

const storeIn = (directory: string): string => join(directory, 'upload-server', 'store.db')

/** A store that nothing was written to has no rows. */
async function query(directory: string, text: string): Promise<Record<string, unknown>[]> {
  const path = storeIn(directory)
  const isNew = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
  if (isNew && !existsSync(`${path}-wal`)) return []
  const database = openSqlite(path, 5000)
  try {
    return database.prepare(text).all() as Record<string, unknown>[]
  } finally {
    database.close()
  }
}
