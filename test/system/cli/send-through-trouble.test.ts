import { createHash, randomBytes } from 'node:crypto'
import { truncateSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Fault, startFaultProxy } from '../../../src/provider-tests/fault-proxy.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { download } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { type SpawnedServer, spawnServer } from '../../helpers/spawn-server.ts'
import { startApp } from '../../helpers/start-app.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Gives every put a new key, so that a file that is stored twice shows. */
const configOf = (port: number, limits: object = {}) => ({
  server: { port, strictPort: true },
  keyTemplate: '{filename}-{uuid}{extname}',
  limits,
  providers: { local: { Default: { directory: 'stored', serve: true } } },
})

const storedIn = async (directory: string) =>
  (await readdir(join(directory, 'stored'))).filter(name => !name.startsWith('.'))

async function startServer(limits?: object, port?: number) {
  const { url, directory } = await startApp({ config: configOf(port ?? 0, limits) })
  return { port: Number(new URL(url).port), stored: () => storedIn(directory) }
}

/** A server in a process that can be killed. */
async function startMortal() {
  const directory = await makeDirectory()
  const port = await findFreePorts()
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(configOf(port)))
  let server: SpawnedServer | undefined
  const start = async () => {
    server = await spawnServer([], { directory })
    await server.url
  }
  await start()
  return {
    port,
    async killAndRestart() {
      server?.process.kill('SIGKILL')
      await server?.exit
      await start()
    },
    stored: () => storedIn(directory),
  }
}

async function startProxy(port: number, decide: Parameters<typeof startFaultProxy>[1]) {
  const proxy = await startFaultProxy(port, decide)
  onTestFinished(() => proxy.close())
  return proxy
}

async function makeFiles(sizes: readonly number[]): Promise<{ cwd: string; hashes: Map<string, string> }> {
  const cwd = await makeDirectory()
  await mkdir(join(cwd, 'out'))
  const hashes = new Map<string, string>()
  for (const [index, size] of sizes.entries()) {
    const name = `out/${String(index).padStart(3, '0')}.bin`
    const bytes = randomBytes(size)
    await writeFile(join(cwd, name), bytes)
    hashes.set(name, sha256(bytes))
  }
  return { cwd, hashes }
}

const send = (port: number, cwd: string, ...args: string[]) =>
  runCli(['upload', '-q', '--server', `127.0.0.1:${port}`, ...args, 'out'], { cwd })

describe('upload --server through trouble', () => {
  it('60 files reach a server that is killed three times behind a proxy that answers 502 and 429 by turns', {
    timeout: 120_000,
  }, async () => {
    const server = await startMortal()
    const kills = new Set([9, 24, 42])
    // A third of them: with every second request the unlucky one of 60 waits half a minute.
    const faults: (Fault | undefined)[] = [
      ...[{ status: 502, body: '<h1>Bad Gateway</h1>' }, undefined, undefined],
      ...[{ status: 429 }, undefined, undefined],
    ]
    let restarted: Promise<void> = Promise.resolve()
    const proxy = await startProxy(server.port, ({ line, index }) => {
      if (!line.startsWith('POST')) return undefined
      if (kills.has(index)) restarted = restarted.then(() => server.killAndRestart())
      return faults[index % faults.length]
    })
    const { cwd, hashes } = await makeFiles(
      Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? 1024 : 70_000 + n * 20_000)),
    )
    const { code, stdout, stderr } = await send(proxy.port, cwd, '--format', 'json')
    await restarted
    expect(code, stderr).toBe(0)
    const results: { name: string; url: string }[] = JSON.parse(stdout)
    expect(results.map(({ name }) => name)).toEqual([...hashes.keys()])
    for (const { name, url } of results) expect(sha256(await download(url)), name).toBe(hashes.get(name))
    // Nothing but what has a link: no file is stored twice.
    const linked = results.map(({ url }) => decodeURIComponent(url.split('/').at(-1) ?? ''))
    expect((await server.stored()).toSorted()).toEqual(linked.toSorted())
    expect(proxy.seen.length).toBeGreaterThan(60)
  })

  it.each<[string, Fault, string[]]>([
    ['is lost', 'lost answer', []],
    ['is a reset', 'reset', []],
    ['is a 503 of a proxy in JSON', { status: 503, body: '{"message":"no healthy upstream"}' }, []],
    ['is a 408', { status: 408 }, ['--retry-max-time', '90s']],
  ])(
    'the first answer %s: it is sent again, for the time that is named, and stored once',
    async (_, fault, args) => {
      const server = await startServer()
      const proxy = await startProxy(server.port, ({ index }) => (index === 0 ? fault : undefined))
      const { cwd } = await makeFiles([100_000])
      const { code, stdout, stderr } = await send(proxy.port, cwd, ...args)
      expect(code, stderr).toBe(0)
      expect(stdout).toMatch(/^http\S+\n$/)
      const time = args[1] === undefined ? '5 min' : '90 s'
      expect(stderr).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+ .*\\. Retrying for up to ${time}\\.$`, 'm'))
      expect(await server.stored()).toHaveLength(1)
    },
  )

  it('a file that is cut short between two attempts is not sent, the next one is', async () => {
    const server = await startServer()
    const { cwd } = await makeFiles([100_000, 100_000])
    const proxy = await startProxy(server.port, ({ line, index }) => {
      if (!line.startsWith('POST') || index > 0) return undefined
      truncateSync(join(cwd, 'out/000.bin'), 50_000)
      return { status: 503 }
    })
    const { code, stderr } = await send(proxy.port, cwd, '--concurrency', '1')
    expect(code).toBe(3)
    expect(stderr).toMatch(/^out\/000\.bin: the file changed while it was being sent$/m)
    expect(await server.stored()).toHaveLength(1)
  })

  it('a job that is run again gets the links it had, and another one new ones', async () => {
    const server = await startServer()
    const { cwd } = await makeFiles([1000, 100_000])
    const run = async (job: string) => (await send(server.port, cwd, '--job', job)).stdout
    const first = await run('1')
    expect(await run('1')).toBe(first)
    expect(await run('2')).not.toBe(first)
    expect(await server.stored()).toHaveLength(4)
  })

  it('--wait waits for a server that is not there yet; without it that is an error at once', async () => {
    const port = await findFreePorts()
    const { cwd } = await makeFiles([1000])
    expect(await send(port, cwd)).toMatchObject({ code: 4, stdout: '' })
    const waiting = send(port, cwd, '--wait')
    await startServer({}, port)
    expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringMatching(/^http/) })
  })

  it('nobody there ends at the time limit, not file by file', async () => {
    const proxy = await startProxy(1, () => ({ status: 502 }))
    const { cwd } = await makeFiles(Array.from({ length: 12 }, () => 70_000))
    expect(await send(proxy.port, cwd, '--retry-max-time', '1', '--concurrency', '1')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('12 of 12 files failed.'),
    })
    // Each file would take two requests at least.
    expect(proxy.seen.length).toBeLessThan(24)
  })

  it('a wrong key is tried by the first requests alone: more would lock the address out', async () => {
    const body = '{"success":false,"message":"The key is wrong."}'
    const proxy = await startProxy(1, () => ({ status: 401, body }))
    const { cwd } = await makeFiles(Array.from({ length: 30 }, () => 70_000))
    const { code, stderr } = await send(proxy.port, cwd)
    expect(code).toBe(5)
    expect(stderr).toMatch(
      /^out\/000\.bin and 29 others: The key is wrong\. Pass the upload key of that server with --key or UPLOAD_SERVER_KEY\.$/m,
    )
    expect(proxy.seen.length).toBeLessThanOrEqual(4)
  })
})
