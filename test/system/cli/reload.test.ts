import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { download, formOf, list, post, upload } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { startGate } from '../../helpers/gate.ts'
import { needs } from '../../helpers/needs.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { BIN, spawnServer } from '../../helpers/spawn-server.ts'

type Line = Record<string, unknown> & { level: string; msg: string }

const RELOADED = 'Configuration reloaded'

/** A configuration that nobody may use without a key. Tests ask with the next one until it is there. */
const withKey = (key: string, more: object = {}) => ({
  server: { port: 0, key },
  auth: { loopbackExempt: false, maxFailures: 0 },
  ...more,
})

async function start(config: unknown, args: string[] = [], directory?: string) {
  const cwd = directory ?? (await makeDirectory())
  const file = join(cwd, 'upload-server.json')
  if (directory === undefined) await writeFile(file, JSON.stringify(config))
  const server = await spawnServer(args, { directory: cwd })
  const log = (): Line[] => server.lines.map(line => JSON.parse(line))
  return {
    cwd,
    file,
    url: await server.url,
    process: server.process,
    exit: server.exit,
    log,
    /** Replaces the file as editors do. */
    async write(next: unknown) {
      await writeFile(`${file}.new`, typeof next === 'string' ? next : JSON.stringify(next))
      await rename(`${file}.new`, file)
    },
    reload: () => void server.process.kill('SIGHUP'),
    said: (text: string) =>
      eventually(() => expect(log().map(line => line.msg)).toContainEqual(expect.stringContaining(text))),
  }
}

async function statusWith(url: string, key: string): Promise<number> {
  return (await post(`${url}/upload?key=${key}`, { body: formOf({ 'a.txt': key }) })).status
}

describe('SIGHUP', () => {
  it('takes a new upload key while uploads go on, and drops none of them', async () => {
    const server = await start(withKey('key-0'), ['--no-watch'])
    let isOver = false
    const statuses: number[] = []
    const busy = Promise.all(
      [1, 2, 3].map(async () => {
        while (!isOver) statuses.push(await statusWith(server.url, 'all-along'))
      }),
    )
    for (let round = 1; round <= 5; round++) {
      const both = [
        { name: 'one', key: `key-${round}` },
        { name: 'other', key: 'all-along' },
      ]
      await server.write({
        ...withKey('unused'),
        auth: { loopbackExempt: false, maxFailures: 0, keys: both },
      })
      server.reload()
      await eventually(async () => expect(await statusWith(server.url, `key-${round}`)).toBe(200))
      expect(await statusWith(server.url, `key-${round - 1}`)).toBe(401)
      if (round === 1) statuses.length = 0
    }
    isOver = true
    await busy
    expect(statuses.length).toBeGreaterThan(0)
    // Those that were sent before the first reload was there had no right to upload.
    expect(new Set(statuses.slice(3))).toEqual(new Set([200]))
    expect(server.log().filter(line => line.level === 'error')).toEqual([])
  })

  it('lets what runs end with the destination and the limits it began with, then closes them', async () => {
    const cwd = await makeDirectory()
    const to = (name: string, more: object = {}) => ({
      server: { port: 0 },
      providers: { local: { Default: { directory: join(cwd, name), serve: true } } },
      ...more,
    })
    const server = await start(to('old', { limits: { fileSize: '8B' } }), ['--no-watch'])
    const gate = await startGate()
    const running = post(`${server.url}/upload`, list(gate.url))
    await gate.reached(1)
    await server.write(to('new', { limits: { fileSize: '4B' } }))
    server.reload()
    await server.said(RELOADED)
    const [large, small] = [
      await upload(`${server.url}/upload`, { 'b.txt': 'more than 4' }),
      await upload(`${server.url}/upload`, { 'c.txt': 'new' }),
    ]
    expect([large.status, small.status]).toEqual([413, 200])
    expect(await treeOf(join(cwd, 'new'))).toEqual([expect.stringMatching(/^c-/)])
    gate.open()
    expect((await running).status).toBe(200)
    expect(await download(small.result[0] as string)).toEqual(Buffer.from('new'))
    // What a destination keeps while it is open has gone, too.
    await eventually(async () =>
      expect(await readdir(join(cwd, 'old'))).toEqual([expect.stringMatching(/^\d{4}$/)]),
    )
    expect(await treeOf(join(cwd, 'old'))).toEqual([expect.stringMatching(/^file-/)])
  })

  it('keeps the old configuration when the new one is broken, and says every mistake with its path', async () => {
    const server = await start(withKey('first'), ['--no-watch'])
    await server.write({ server: { prot: 1, port: 'x' }, sever: {} })
    server.reload()
    const error = await eventually(() => {
      const found = server.log().find(line => line.level === 'error')
      expect(found).toBeDefined()
      return found as Line
    })
    expect(error.msg).toContain('Could not reload the configuration. The previous one stays in use.')
    expect(error['problems']).toEqual([
      'server.port: must be a number, not a string',
      'server.prot: is not an option. Did you mean "port"?',
      'sever: is not an option. Did you mean "server"?',
    ])
    expect(await statusWith(server.url, 'first')).toBe(200)
    await server.write(withKey('second'))
    server.reload()
    await server.said(RELOADED)
    expect([await statusWith(server.url, 'second'), await statusWith(server.url, 'first')]).toEqual([
      200, 401,
    ])
  })

  it('says which settings and destinations have changed, without their values', async () => {
    const local = (names: string[], more: object = {}) => ({
      local: Object.fromEntries(names.map(name => [name, { directory: name, serve: true, ...more }])),
    })
    const first = withKey('first', { default: 'local/a', providers: local(['a', 'b']) })
    const server = await start(first, ['--no-watch'])
    await server.write(
      withKey('s3cond', {
        default: 'local/b',
        limits: { fileSize: '9B' },
        providers: local(['b', 'c'], { keyTemplate: '{uuid}' }),
      }),
    )
    server.reload()
    const changed = ['default', 'server.key', 'limits.fileSize', 'local/a', 'local/b', 'local/c']
    const line = await eventually(() => {
      const found = server.log().find(({ msg }) => msg.startsWith(RELOADED))
      expect(found).toBeDefined()
      return found as Line
    })
    expect([...(line['changed'] as string[])].sort()).toEqual(changed.sort())
    for (const name of changed) expect(line.msg).toContain(name)
    expect(
      server
        .log()
        .map(one => JSON.stringify(one))
        .join(),
    ).not.toContain('s3cond')
    server.reload()
    await server.said(`${RELOADED}: nothing has changed`)
  })

  it('names what takes effect at the next start only', async () => {
    const server = await start({ server: { port: 0 } }, ['--no-watch'])
    await server.write({
      server: { port: 1, host: '192.0.2.1' },
      database: { path: join(server.cwd, 'other.db') },
      log: { level: 'debug' },
    })
    server.reload()
    await server.said('database.path has changed. Restart the server to apply it')
    const warned = server.log().flatMap(line => line['setting'] ?? [])
    expect(warned).toEqual(['server.host', 'server.port', 'database.path'])
    expect(await upload(`${server.url}/upload`, { 'a.txt': 'x' })).toMatchObject({ status: 200 })
    expect(await readdir(server.cwd)).not.toContain('other.db')
    await fetch(`${server.url}/heartbeat`)
    await eventually(() => expect(server.log().map(line => line.level)).toContain('debug'))
  })

  it('does not end a server that has just answered its first heartbeat', async () => {
    const directory = await makeDirectory()
    const port = await findFreePorts(1)
    const server = await spawnServer(['--port', String(port), '--strict-port'], { directory })
    const url = `http://127.0.0.1:${port}`
    for (let isAlive = false; !isAlive; )
      isAlive = await fetch(`${url}/heartbeat`).then(
        ({ ok }) => ok,
        () => false,
      )
    server.process.kill('SIGHUP')
    expect(await Promise.race([server.exit, server.url])).toBe(url)
    await eventually(() => expect(server.lines.join()).toContain(RELOADED))
    expect(JSON.parse(server.lines[0] as string).msg).toBe(`Listening on ${url}`)
  })

  it('ends the server when it comes from a terminal that was closed', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const script = [
      'import os, pty, sys',
      'pid, terminal = pty.fork()',
      'if pid == 0: os.execv(sys.argv[1], sys.argv[1:])',
      'seen = b""',
      'while b"Local:" not in seen: seen += os.read(terminal, 4096)',
      'os.close(terminal)',
      'print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) # minus the number of the signal',
    ].join('\n')
    const args = ['-c', script, process.execPath, BIN, '--port', '0']
    expect(await runProgram('python3', args, { cwd })).toMatchObject({ stdout: '-1\n', stderr: '' })
  })
})

describe('a changed file', () => {
  it('is taken by itself, and so is one that a secret is taken from', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'key'), 'first\n')
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(withKey('${file:key}')))
    const server = await start(undefined, [], cwd)
    await writeFile(join(cwd, 'key'), 'second\n')
    await eventually(async () => expect(await statusWith(server.url, 'second')).toBe(200))
    expect(await statusWith(server.url, 'first')).toBe(401)

    await rm(server.file)
    await eventually(() => expect(server.log().at(-1)?.msg).toContain('no such file'))
    // Never the embedded default, which everybody may use.
    expect(await statusWith(server.url, 'second')).toBe(200)
    await server.write(withKey('third'))
    await eventually(async () => expect(await statusWith(server.url, 'third')).toBe(200))
  })

  it('is not looked for with --no-watch or server.watch', async () => {
    const off = await start(withKey('a'), ['--no-watch'])
    const configured = await start({ ...withKey('a'), server: { port: 0, key: 'a', watch: false } })
    const on = await start(withKey('a'))
    for (const server of [off, configured, on]) await server.write(withKey('b'))
    await on.said(RELOADED)
    await on.write(withKey('c'))
    await eventually(async () => expect(await statusWith(on.url, 'c')).toBe(200))
    for (const server of [off, configured])
      expect(server.log().map(line => line.msg)).not.toContainEqual(expect.stringContaining(RELOADED))
    // A reload may switch it on.
    configured.reload()
    await configured.said(RELOADED)
    await configured.write(withKey('c'))
    await eventually(async () => expect(await statusWith(configured.url, 'c')).toBe(200))
  })
})

async function treeOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => entry.name)
}
