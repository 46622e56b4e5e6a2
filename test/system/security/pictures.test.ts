import type { ChildProcess } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { beforeEach, describe, expect, it } from 'vitest'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { expectFailure, expectStored } from '../../helpers/expect-answer.ts'
import { type Answer, download, upload } from '../../helpers/form.ts'
import { needsLinux } from '../../helpers/needs.ts'
import { pngChunk } from '../../helpers/picture.ts'
import { isRunning, listProcesses, type RunningProcess } from '../../helpers/processes.ts'
import { type SpawnedServer, spawnServer } from '../../helpers/spawn-server.ts'

const MIB = 1024 * 1024

interface Server extends SpawnedServer {
  store(name: string, bytes: Uint8Array): Promise<Answer>
}

async function start(pictures: object, env: Record<string, string> = {}): Promise<Server> {
  const directory = await makeDirectory()
  const providers = { local: { Default: { directory: './files', serve: true } } }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ images: pictures, providers }))
  const server = await spawnServer(['--port', '0'], { directory, env })
  const url = await server.url
  return { ...server, store: (name, bytes) => upload(`${url}/upload`, { [name]: bytes }) }
}

beforeEach(context => needsLinux(context, '/proc'))

/** The processes that change pictures: those below a server. */
function pictureProcesses(server: { process: ChildProcess }): number[] {
  const all = listProcesses()
  const below = (above: number): RunningProcess[] =>
    all.filter(({ parent }) => parent === above).flatMap(one => [one, ...below(one.pid)])
  return below(server.process.pid!)
    .filter(({ args }) => args.includes('picture-process'))
    .map(({ pid }) => pid)
}

/** The process at work, once there is one. */
const pictureProcess = (server: { process: ChildProcess }) =>
  eventually(() => {
    const found = pictureProcesses(server)
    expect(found).toHaveLength(1)
    return found[0] as number
  })
const expectNoProcess = (server: { process: ChildProcess }) =>
  eventually(() => expect(pictureProcesses(server)).toEqual([]))

/** Whether a process has a handler for a signal, by the bits of SigCgt in proc(5). */
async function catches(pid: number, signal: number): Promise<boolean> {
  const [, bits = '0'] = /^SigCgt:\s*(\w+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return ((BigInt(`0x${bits}`) >> BigInt(signal - 1)) & 1n) === 1n
}

const plain = (width = 40, height = 30) =>
  sharp({ create: { width, height, channels: 3, background: '#f00' } })
    .png()
    .toBuffer()

/** What no encoder is done with soon. */
async function noise(width: number, height: number): Promise<Buffer> {
  const grain = { width: 300, height: 300, channels: 3, background: '#000' } as const
  const tile = await sharp({ create: { ...grain, noise: { type: 'gaussian', mean: 128, sigma: 40 } } })
    .png()
    .toBuffer()
  return sharp({ create: { ...grain, width, height } })
    .composite([{ input: tile, tile: true }])
    .jpeg()
    .toBuffer()
}

let large: Promise<Buffer> | undefined
const neverDone = () => (large ??= noise(4000, 4000))

async function expectWorks(server: Server, name = 'after.png'): Promise<void> {
  const answer = await server.store(name, await plain())
  expect(answer.message).toBeUndefined()
  expect((await sharp(await download(answer.result[0]!)).metadata()).format).toBe('webp')
}

/** A drawing that takes librsvg longer than anybody waits: each group holds the one before ten times. */
function endless(doctype: string): string {
  const groups = Array.from({ length: 12 }, (_, n) => {
    const uses = `<use href="#g${n}" x="1"/>`.repeat(10)
    return `<g id="g${n + 1}">${uses}</g>`
  })
  return `${doctype}<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900"><g id="g0"><rect width="9" height="9"/></g>${groups.join('')}</svg>`
}

it('a drawing that passes for a picture is not drawn, and two of them stop no upload', {
  timeout: 60_000,
}, async () => {
  const doctype = '<!DOCTYPE x [<!ENTITY a "b">]>'
  const heads = {
    'AVIF in a comment': `<!--ftypavif    -->${doctype}`,
    'HEIC in a comment': `<!--ftypheic    -->${doctype}`,
    'AVIF, not in UTF-8': `<!--ftypavif \xe9  -->${doctype}`,
    'AVIF, with what no text has': `<!--ftypavif \x01 -->${doctype}`,
    TIFF: `II*\0<!-- -->${doctype}`,
    'AVIF with a box of its length': `\0\0\0\x14ftypavif\0\0\0\0avif${doctype}`,
  }
  const server = await start({ format: 'webp', larger: true, stripMetadata: true })
  for (const [what, head] of Object.entries(heads)) {
    const drawing = Buffer.from(endless(head), 'latin1')
    const answers = await Promise.all([1, 2, 3].map(n => server.store(`${what} ${n}.avif`, drawing)))
    for (const answer of answers) {
      if (answer.success) await expectStored(answer, [drawing])
      else expectFailure(answer, 422, 'source_failed')
    }
    await expectWorks(server, `after ${what}.png`)
  }
})

describe('pictures that would never be done', () => {
  it('are ended with their process, and whoever waits is answered in time', async () => {
    const server = await start({ format: 'avif', larger: true, timeout: '3s' })
    const slow = await neverDone()
    const answers = await Promise.all([1, 2, 3, 4].map(n => server.store(`${n}.jpg`, slow)))
    const codes = answers.map(answer => answer.code).sort()
    expect(codes).toEqual(['overloaded', 'overloaded', 'source_failed', 'source_failed'])
    expect(answers.map(answer => answer.message).join()).toMatch(/was queued for too long/)
    await expectNoProcess(server)
    const answer = await server.store('after.png', await plain())
    expect(answer.message).toBeUndefined()
  })

  it('are ended when their sender leaves', async () => {
    const server = await start({ format: 'avif', larger: true })
    const leave = new AbortController()
    const body = new FormData()
    body.append('file', new Blob([new Uint8Array(await neverDone())]), 'a.jpg')
    const sent = fetch(`${await server.url}/upload`, { method: 'POST', body, signal: leave.signal })
    sent.catch(() => {})
    await pictureProcess(server)
    leave.abort()
    await expectNoProcess(server)
  })
})

describe('a picture of little but memory', () => {
  const HEAD = 33 // signature and IHDR
  const peakOf = async (pid: number) =>
    Number(/VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

  async function withChunks(...chunks: Buffer[]): Promise<Buffer> {
    const png = await plain(1, 1)
    return Buffer.concat([png.subarray(0, HEAD), ...chunks, png.subarray(HEAD)])
  }

  it('(an animated PNG of 4 million empty chunks) takes little more than its size, and not in the server', async () => {
    const server = await start({ stripMetadata: true })
    const control = pngChunk('acTL', Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]))
    const two = Buffer.concat([pngChunk('raNd', Buffer.alloc(0)), pngChunk('tEXt', Buffer.alloc(0))])
    const many = Buffer.alloc(2_000_000 * two.length, two)
    const answer = await server.store('a.png', await withChunks(control, many))
    expect(answer.items[0]).toMatchObject({ contentType: 'image/apng' })
    expect(answer.items[0]!.size).toBeLessThan(many.length / 2 + 1000)
    expect(await peakOf(server.process.pid!)).toBeLessThan(250)
    const [child = 0] = pictureProcesses(server)
    expect(await peakOf(child)).toBeLessThan(100 + (1.5 * many.length) / MIB)
  })

  it('(10 MB of compressed comments of 50 MB each) ends, and takes no gigabyte', async () => {
    const server = await start({ stripMetadata: true })
    const comment = pngChunk(
      'zTXt',
      Buffer.concat([Buffer.from('a\0\0'), deflateSync(Buffer.alloc(50_000_000, 'x'), { level: 9 })]),
    )
    const sent = server.store('a.png', await withChunks(...Array(200).fill(comment)))
    let most = 0
    const watch = setInterval(async () => {
      for (const pid of pictureProcesses(server)) most = Math.max(most, await peakOf(pid).catch(() => 0))
    }, 100)
    const answer = await sent.finally(() => clearInterval(watch))
    expectFailure(answer, 413, 'too_large')
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThan(1000)
    await expectNoProcess(server)
  })
})

describe('the process that reads pictures', () => {
  const options = { format: 'webp', larger: true }

  it('is not there before the first one, nor some time after the last', async () => {
    const server = await start(options)
    expect(pictureProcesses(server)).toEqual([])
    for (const name of ['a', 'b', 'c', 'd']) await expectWorks(server, `${name}.png`)
    await pictureProcess(server)
    await expectNoProcess(server)
  })

  it('knows no secret of the environment', async () => {
    const server = await start(options, {
      UPLOAD_SERVER_KEY: 'secret-of-the-server',
      AWS_SECRET_ACCESS_KEY: 'another',
    })
    await expectWorks(server)
    const [pid] = pictureProcesses(server)
    const names = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').map(one => one.split('=')[0])
    expect(names.filter(name => /key|secret|token|password|upload/i.test(name!))).toEqual([])
  })

  it('ends with a server that is killed, at work or not', async () => {
    for (const isAtWork of [false, true]) {
      const server = await start({ format: 'avif', larger: true })
      const sent = server.store('a.jpg', await (isAtWork ? neverDone() : plain())).catch(() => {})
      const pid = await pictureProcess(server)
      if (!isAtWork) await sent
      expect(isRunning(pid)).toBe(true)
      server.process.kill('SIGKILL')
      await eventually(async () => expect(isRunning(pid)).toBe(false))
    }
  })

  it('finishes its work when the signal for the end reaches it, too', async () => {
    const server = await start(options)
    const sent = server.store('a.jpg', await noise(3000, 3000))
    const pid = await pictureProcess(server)
    // SIGHUP is the last signal that it handles, and Node itself handles SIGTERM from the start.
    await eventually(async () => expect(await catches(pid, constants.signals.SIGHUP)).toBe(true))
    for (const target of [pid, server.process.pid!]) process.kill(target, 'SIGTERM')
    expect((await sent).success).toBe(true)
    await server.exit
    await eventually(async () => expect(isRunning(pid)).toBe(false))
  })

  it('may be killed: that picture fails, the next one does not', async () => {
    const server = await start({ format: 'avif', larger: true })
    const sent = server.store('a.jpg', await neverDone())
    const pid = await pictureProcess(server)
    process.kill(pid, 'SIGKILL')
    expectFailure(await sent, 422, 'source_failed')
    expect((await server.store('b.png', await plain())).success).toBe(true)
  })

  it('does not keep a command from ending, and ends with it', async () => {
    const directory = await makeDirectory()
    const providers = { local: { Default: { directory: './files', urlPrefix: 'https://example.com' } } }
    await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ images: options, providers }))
    await writeFile(join(directory, 'a.png'), await plain())
    const { code, stdout } = await runCli(['upload', 'a.png'], { cwd: directory })
    expect(code).toBe(0)
    expect(stdout).toMatch(/\.webp\n$/)
  })
})
