import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { download, formOf, list, post } from '../helpers/form.ts'
import { startGate } from '../helpers/gate.ts'
import { expectRoute, ROUTES } from '../helpers/routes.ts'
import { BIN, environmentIn, runServer, type SpawnedServer, spawnServer } from '../helpers/spawn-server.ts'

type Line = Record<string, unknown> & { msg: string }

const ARGUMENTS = ['--port', '0', '--workers', '2']
const linesOf = ({ lines }: SpawnedServer): Line[] => lines.map(line => JSON.parse(line))
const said = (server: SpawnedServer, text: string) =>
  eventually(() => expect(linesOf(server).filter(({ msg }) => msg.includes(text))[0]).toBeDefined())

/** Process numbers of the workers that have answered something, the latest one in each place. */
const pidsOf = (server: SpawnedServer): number[] => {
  const places = new Map(
    linesOf(server).flatMap(({ worker, pid }) => (worker ? [[Number(worker), Number(pid)] as const] : [])),
  )
  return [1, 2].flatMap(place => places.get(place) ?? [])
}

/** Asks on connections of their own, which the workers get by turns. */
const askBoth = (url: string, method: string, target: string, headers = {}) =>
  Promise.all([1, 2].map(() => ask(url, method, target, { headers })))

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function configure(config: object): Promise<string> {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  return directory
}

describe('two workers', () => {
  let directory: string
  let server: SpawnedServer
  let url: string
  /** Writes a line at each run, and fails while a file `broken` is there. */
  const hook = 'echo "$UPLOAD_ID" >> runs; ! [ -e broken ]'

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'upload-server-test-'))
    const config = {
      server: { key: 'k3y-0f-the-server', trustProxy: ['loopback'] },
      auth: { maxFailures: 4 },
      metrics: { enabled: true },
      keyTemplate: '{filename}{extname}',
      default: 'local/Default',
      providers: {
        local: {
          Default: { directory: './files', serve: true, onConflict: 'rename' },
          same: { directory: './same', serve: true, dedupe: true, keyTemplate: '{uuid}' },
        },
      },
      finalization: { hooks: [{ name: 'note', command: ['sh', '-c', `cd ${directory}; ${hook}`] }] },
    }
    await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
    server = runServer(ARGUMENTS, directory)
    url = await server.url
  })
  afterAll(async () => {
    server.process.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(server.errors()).toBe('')
    await rm(directory, { recursive: true })
  })

  const send = (name: string, content: string, headers: Record<string, string> = {}, query = '') =>
    post(`${url}/upload${query}`, { body: formOf({ [name]: content }), headers })
  const runs = async () => (await readFile(join(directory, 'runs'), 'utf8')).split('\n').filter(Boolean)
  const stored = async (name: string) =>
    (await readdir(join(directory, 'files'))).filter(one => one.startsWith(name))

  it('say once where they listen, and in each line who writes it', async () => {
    await askBoth(url, 'POST', '/upload')
    await eventually(() => expect(pidsOf(server)).toHaveLength(2))
    const [first, ...rest] = linesOf(server)
    expect(first).toMatchObject({ url, msg: `Listening on ${url}` })
    expect(first).not.toHaveProperty('worker')
    const requests = rest.filter(line => 'req' in line)
    expect(requests.map(({ worker }) => worker).sort()).toEqual([1, 2])
    expect(new Set(pidsOf(server)).size).toBe(2)
    expect(pidsOf(server)).not.toContain(server.process.pid)
  })

  it.for(ROUTES)('answer by the contract: %s %s: %i', route => expectRoute(url, route))

  it('give files of one name that come at the same instant names of their own', async () => {
    const contents = Array.from({ length: 24 }, (_, n) => `content ${n}`)
    const answers = await Promise.all(contents.map(content => send('same.txt', content)))
    const links = answers.map(answer => String(answer.result[0]))
    expect(new Set(links).size).toBe(24)
    const found = await Promise.all(links.map(download))
    expect(found.map(String)).toEqual(contents)
    const took = linesOf(server).filter(line => String(line['keys']).includes('same'))
    expect(new Set(took.map(({ worker }) => worker)).size).toBe(2)
  })

  it('make one object of a request that is repeated at the same instant', async () => {
    const headers = { 'Idempotency-Key': 'k1' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => send('once.txt', 'once', headers)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(new Set(answers.map(({ result }) => result[0])).size).toBe(1)
    expect(await stored('once')).toEqual(['once.txt'])
  })

  it('run the steps of an upload once when it is finished by several at the same instant', async () => {
    await writeFile(join(directory, 'broken'), '')
    const pending = await send('late.txt', 'late')
    expect(pending.status).toBe(424)
    await rm(join(directory, 'broken'))
    const { finalizationId: id } = pending as unknown as { finalizationId: string }
    const finish = () => post(`${url}/upload?finalizationId=${id}`)
    const answers = await Promise.all(Array.from({ length: 8 }, finish))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect((await runs()).filter(one => one === id)).toHaveLength(2)
    expect(await stored('late')).toHaveLength(1)
  })

  it('know of what the other one has stored', async () => {
    const links = []
    for (let n = 0; n < 4; n++)
      links.push(...(await send('a.txt', 'the same', { Connection: 'close' }, '?configName=same')).result)
    expect(new Set(links).size).toBe(1)
  })

  it('allow no more wrong keys together than one does', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) {
      const headers = { 'X-Upload-Key': `wrong-key-${n}`, 'X-Forwarded-For': '203.0.113.9' }
      statuses.push(...(await askBoth(url, 'POST', '/upload', headers)).map(({ status }) => status))
    }
    expect(new Set(statuses)).toEqual(new Set([401, 429]))
    expect(statuses.filter(status => status === 401).length).toBeLessThanOrEqual(4)
  })

  it('count together, whichever is asked', async () => {
    const figures = async () => {
      const texts = (await askBoth(url, 'GET', '/metrics')).map(({ body }) => body)
      return texts.map(text => Number(/^upload_server_files_stored_total{.*same"} (\d+)/m.exec(text)?.[1]))
    }
    const [before = Number.NaN] = await figures()
    await Promise.all([1, 2, 3, 4, 5, 6].map(n => send('b.txt', `${n}`, {}, '?configName=same')))
    expect(await figures()).toEqual([before + 6, before + 6])
  })
})

describe('a worker that dies', () => {
  it('is replaced, its jobs are reported once, and those of the other one go on', async () => {
    const directory = await configure({ limits: { concurrentUploads: 2, waitingUploads: 0 } })
    const server = await spawnServer(ARGUMENTS, { directory })
    const url = await server.url
    const gate = await startGate()
    const going = [1, 2].map(() => post(`${url}/upload`, list(gate.url)).catch(() => 'cut' as const))
    await gate.reached(2)
    // Both have their part of the limit, of which those that fetch addresses have their own.
    const refused = await Promise.all([1, 2].map(() => post(`${url}/upload`, list(gate.url))))
    expect(refused.map(({ status }) => status)).toEqual([503, 503])
    await eventually(() => expect(pidsOf(server)).toHaveLength(2))
    const [first = 0, second = 0] = pidsOf(server)

    process.kill(first, 'SIGKILL')
    await said(server, 'Worker 1 was replaced')
    await said(server, 'An upload was interrupted')
    gate.open()
    const answers = await Promise.all(going)
    expect(answers.filter(answer => answer === 'cut')).toHaveLength(1)
    expect(answers).toContainEqual(expect.objectContaining({ status: 200 }))
    await eventually(async () => {
      await askBoth(url, 'POST', '/upload')
      expect(pidsOf(server)[1]).toBe(second)
      expect([first, second]).not.toContain(pidsOf(server)[0])
    })
    const reports = linesOf(server).filter(({ msg }) => msg.includes('interrupted'))
    expect(reports).toMatchObject([{ origins: [gate.url] }])
    const { status } = await post(`${url}/upload`, list('data:,x'))
    expect(status).toBe(200)
  })

  it('leaves no client waiting, and ends the server when it dies again and again as soon as it is there', async () => {
    const server = await spawnServer(ARGUMENTS)
    const url = await server.url
    await eventually(async () => {
      await askBoth(url, 'POST', '/upload')
      expect(pidsOf(server)).toHaveLength(2)
    })
    const [first = 0, other = 0] = pidsOf(server)
    process.kill(first, 'SIGSTOP')
    const beats = [1, 2, 3, 4].map(() => ask(url, 'GET', '/heartbeat').catch(() => 'reset' as const))
    // The other one has answered what it got; one of the rest is about to be taken.
    await Promise.any(beats)
    process.kill(first, 'SIGKILL')
    const answers = await Promise.all(beats)
    expect(answers.filter(answer => answer !== 'reset' && answer.status !== 200)).toEqual([])

    let hasEnded = false
    void server.exit.then(() => {
      hasEnded = true
    })
    await eventually(() => {
      const [pid = 0] = pidsOf(server)
      if (isRunning(pid)) process.kill(pid, 'SIGKILL')
      expect(hasEnded).toBe(true)
    })
    expect(await server.exit).toBe(1)
    expect(linesOf(server).find(({ level }) => level === 'fatal')?.msg).toMatch(/^Worker 1 died 5 times/)
    expect(isRunning(other)).toBe(false)
  })
})

it('a changed configuration is taken by all workers or by none, also by one that comes later', async () => {
  const config = (key: string) => ({ server: { key }, auth: { loopbackExempt: false } })
  const directory = await configure(config('key-1'))
  const server = await spawnServer(ARGUMENTS, { directory })
  const url = await server.url
  const write = (text: string) => writeFile(join(directory, 'upload-server.json'), text)
  /** Without a body, which is a question for the clipboard. */
  const statuses = async (key: string) =>
    (await askBoth(url, 'POST', '/upload', { 'X-Upload-Key': key })).map(({ status }) => status)
  expect(await statuses('key-1')).toEqual([403, 403])
  await write(JSON.stringify(config('key-2')))
  await said(server, 'Configuration reloaded')
  expect(await statuses('key-1')).toEqual([401, 401])
  expect(await statuses('key-2')).toEqual([403, 403])
  await write('{ "server": 1 }')
  await said(server, 'The old configuration stays in use')
  expect(await statuses('key-2')).toEqual([403, 403])
  await eventually(() => expect(pidsOf(server)).toHaveLength(2))
  process.kill(pidsOf(server)[0] as number, 'SIGKILL')
  await said(server, 'Worker 1 was replaced')
  expect(await statuses('key-2')).toEqual([403, 403])
  await write(JSON.stringify({ ...config('key-2'), store: { path: './other.db' } }))
  await said(server, 'store.path has changed')
})

describe('the end', () => {
  async function startGroup(): Promise<{ child: ChildProcess; url: string; output: () => string }> {
    const directory = await makeDirectory()
    const options = { cwd: directory, env: environmentIn(directory), detached: true }
    const child = spawn(process.execPath, [BIN, ...ARGUMENTS], {
      ...options,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL')
      } catch {}
    })
    let output = ''
    child.stdout?.on('data', chunk => {
      output += chunk
    })
    const url = await eventually(() => String(JSON.parse(output.split('\n')[0] as string).url))
    return { child, url, output: () => output }
  }

  it('lets uploads in all workers finish, although Ctrl-C reaches them, too', async () => {
    const { child, url, output } = await startGroup()
    const gate = await startGate()
    const going = [1, 2].map(() => post(`${url}/upload`, list(gate.url)))
    await gate.reached(2)
    process.kill(-(child.pid as number), 'SIGINT')
    await eventually(() => expect(output()).toContain('Stopping'))
    gate.open()
    expect((await Promise.all(going)).map(({ status }) => status)).toEqual([200, 200])
    await eventually(() => expect(child.exitCode).toBe(0))
  })

  it('of the primary process is that of its workers, also by kill -9', async () => {
    const server = await spawnServer(ARGUMENTS)
    await askBoth(await server.url, 'POST', '/upload')
    await eventually(() => expect(pidsOf(server)).toHaveLength(2))
    server.process.kill('SIGKILL')
    await eventually(() => expect(pidsOf(server).filter(isRunning)).toEqual([]))
  })
})

it('there are no more workers than uploads at the same time', async () => {
  const directory = await configure({ limits: { concurrentUploads: 1 } })
  const server = await spawnServer(ARGUMENTS, { directory })
  await server.url
  await said(server, 'limits.concurrentUploads is 1')
})
