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

async function start(config: object, args = ['--no-watch'], cwd?: string) {
  const directory = cwd ?? (await makeDirectory())
  const file = join(directory, 'upload-server.json')
  await writeFile(file, JSON.stringify(config))
  const server = await spawnServer(args, { directory })
  const url = await server.url
  const log = (): Line[] => server.lines.map(line => JSON.parse(line))
  return {
    ...{ cwd: directory, file, url, log },
    /** Replaces the file as editors do. */
    async write(next: object) {
      await writeFile(`${file}.new`, JSON.stringify(next))
      await rename(`${file}.new`, file)
    },
    reload: () => void server.process.kill('SIGHUP'),
    /** Waits for a line with this text. */
    said: (text: string) =>
      eventually(() => {
        const found = log().find(({ msg }) => msg.includes(text))
        expect(found).toBeDefined()
        return found as Line
      }),
    statusWith: async (key: string) =>
      (await post(`${url}/upload?key=${key}`, { body: formOf({ 'a.txt': key }) })).status,
  }
}

describe('SIGHUP', () => {
  it('takes a new upload key while uploads go on, and drops none of them', async () => {
    const server = await start(withKey('key-0'))
    const keys = (round: number) => ({
      ...withKey('unused'),
      auth: {
        ...withKey('').auth,
        keys: [
          { name: 'one', key: `key-${round}` },
          { name: 'other', key: 'all-along' },
        ],
      },
    })
    const take = async (round: number) => {
      await server.write(keys(round))
      server.reload()
      await eventually(async () => expect(await server.statusWith(`key-${round}`)).toBe(200))
      expect(await server.statusWith(`key-${round - 1}`)).toBe(401)
    }
    await take(1)
    let isOver = false
    const statuses: number[] = []
    const busy = Promise.all(
      [1, 2, 3].map(async () => {
        while (!isOver) statuses.push(await server.statusWith('all-along'))
      }),
    )
    for (const round of [2, 3, 4, 5]) await take(round)
    isOver = true
    await busy
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(server.log().filter(line => line.level === 'error')).toEqual([])
  })

  it('lets what runs end with the destination and the limits it began with, then closes them', async () => {
    const cwd = await makeDirectory()
    const to = (name: string, fileSize: string) => ({
      server: { port: 0 },
      providers: { local: { Default: { directory: join(cwd, name), serve: true } } },
      limits: { fileSize },
    })
    const server = await start(to('old', '8B'))
    const gate = await startGate()
    const running = post(`${server.url}/upload`, list(gate.url))
    await gate.reached(1)
    await server.write(to('new', '4B'))
    server.reload()
    await server.said(RELOADED)
    const large = await upload(`${server.url}/upload`, { 'b.txt': 'more than 4' })
    const small = await upload(`${server.url}/upload`, { 'c.txt': 'new' })
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
    const server = await start(withKey('first'))
    await server.write({ server: { prot: 1, port: 'x' }, sever: {} })
    server.reload()
    const error = await server.said('Could not reload the configuration. The previous one stays in use.')
    expect(error).toMatchObject({
      level: 'error',
      problems: [
        'server.port: must be a number, not a string',
        'server.prot: is not an option. Did you mean "port"?',
        'sever: is not an option. Did you mean "server"?',
      ],
    })
    expect(await server.statusWith('first')).toBe(200)
    await server.write(withKey('second'))
    server.reload()
    await server.said(RELOADED)
    expect([await server.statusWith('second'), await server.statusWith('first')]).toEqual([200, 401])
  })

  it('says which settings and destinations have changed, and what takes effect at the next start only', async () => {
    const local = (names: string[], more: object = {}) => ({
      local: Object.fromEntries(names.map(name => [name, { directory: name, serve: true, ...more }])),
    })
    const first = { server: { port: 0 }, default: 'local/a', providers: local(['a', 'b']) }
    const server = await start(first)
    await server.write({
      server: { port: 1, host: '192.0.2.1' },
      database: { path: join(server.cwd, 'other.db') },
      log: { level: 'debug' },
      default: 'local/b',
      limits: { fileSize: '9B' },
      providers: local(['b', 'c'], { keyTemplate: '{uuid}' }),
    })
    server.reload()
    const restart = ['server.host', 'server.port', 'database.path']
    const changed = [...restart, 'default', 'log.level', 'limits.fileSize', 'local/a', 'local/b', 'local/c']
    const line = await server.said(RELOADED)
    expect((line['changed'] as string[]).toSorted()).toEqual(changed.toSorted())
    for (const name of changed) expect(line.msg).toContain(name)
    await server.said('database.path has changed. Restart the server to apply it')
    expect(server.log().flatMap(one => one['setting'] ?? [])).toEqual(restart)
    expect(await upload(`${server.url}/upload`, { 'a.txt': 'x' })).toMatchObject({ status: 200 })
    expect(await readdir(server.cwd)).not.toContain('other.db')
    await fetch(`${server.url}/heartbeat`)
    await eventually(() => expect(server.log().map(one => one.level)).toContain('debug'))
    server.reload()
    await server.said(`${RELOADED}: nothing has changed`)
  })

  it('does not end a server that has just answered its first heartbeat', async () => {
    const port = await findFreePorts(1)
    const server = await spawnServer(['--port', String(port), '--strict-port'])
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
    const ended = await runProgram('python3', args, { cwd: await makeDirectory() })
    expect(ended).toMatchObject({ stdout: '-1\n', stderr: '' })
  })
})

describe('a changed file', () => {
  it('is taken by itself, and so is one that a secret is taken from', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'key'), 'first\n')
    const server = await start(withKey('${file:key}'), [], cwd)
    const takes = (key: string) => eventually(async () => expect(await server.statusWith(key)).toBe(200))
    await writeFile(join(cwd, 'key'), 'second\n')
    await takes('second')
    expect(await server.statusWith('first')).toBe(401)

    await rm(server.file)
    await server.said('no such file')
    // Never the embedded default, which everybody may use.
    expect(await server.statusWith('second')).toBe(200)
    await server.write(withKey('third'))
    await takes('third')
  })

  it('is not looked for with --no-watch or server.watch', async () => {
    const off = await start(withKey('a'))
    const configured = await start({ ...withKey('a'), server: { port: 0, key: 'a', watch: false } }, [])
    const on = await start(withKey('a'), [])
    for (const server of [off, configured, on]) await server.write(withKey('b'))
    await on.said(RELOADED)
    for (const server of [off, configured])
      expect(server.log().map(line => line.msg)).not.toContainEqual(expect.stringContaining(RELOADED))
    // A reload may switch it on.
    configured.reload()
    await configured.said(RELOADED)
    await configured.write(withKey('c'))
    await eventually(async () => expect(await configured.statusWith('c')).toBe(200))
  })
})

async function treeOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => entry.name)
}
