import { readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createOutgoing } from '../../src/http/proxy/outgoing.ts'
import { createMask } from '../../src/mask.ts'
import type { Upload } from '../../src/store/contract.ts'
import { type Hook, runHook } from '../../src/uploader/hooks.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { isRunning } from '../helpers/processes.ts'
import { newFile, newUpload } from '../helpers/stores.ts'
import { serve } from './sources/servers.ts'

const SECRET = 'marked-secret-0123456789'
const deps = { env: { PATH: process.env['PATH'] }, mask: createMask([SECRET]) }

function newJob(count = 1): Upload {
  const files = Array.from({ length: count }, (_, index) =>
    newFile({ index, url: `https://pictures.example/2026/11/a-long-name-of-a-picture-${index}.png` }),
  )
  const left = { failed: [], endedAt: undefined, steps: [], attempts: 0, problem: undefined }
  return { ...newUpload({ id: 'job-1' }), state: 'stored', files, ...left }
}

const shell = (script: string, ...args: string[]): Hook => ({
  ...{ name: 'test', command: ['sh', '-c', script, ...args], timeoutMs: 10_000 },
})
const node = (script: string): Hook => ({
  ...{ name: 'test', command: [process.execPath, '-e', script], timeoutMs: 20_000 },
})

/** Why a hook failed; undefined when it did not. */
async function failureOf(
  hook: Hook,
  signal = new AbortController().signal,
  job = newJob(),
): Promise<string | undefined> {
  return runHook(hook, job, deps, signal).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

describe('a command', () => {
  it.each<[script: string, message: string | undefined]>([
    ['[ "$UPLOAD_COUNT" = 5000 ]', undefined],
    ['[ "$https_proxy" = http://own:9 ]', undefined],
    ['exit 3', 'exit code 3'],
    ['echo no luck; exit 1', 'exit code 1: no luck'],
    ['echo one; echo two >&2; exit 1', 'exit code 1: one two'],
    ['kill -TERM $$', 'it was killed by SIGTERM'],
    ['printf "\\033[31mred\\033[0m\\007 \\302\\233 end"; exit 1', 'exit code 1: red end'],
    ['printf "\\344\\270"; sleep 0.1; printf "\\255"; exit 1', 'exit code 1: 中'],
    [`echo "the key is ${SECRET}"; exit 1`, 'exit code 1: the key is [secret]'],
    // It need not read the job, however large that is.
    ['exec 0<&-; sleep 0.1; exit 4', 'exit code 4'],
    // What it leaves behind holds its output.
    ['echo forked; sleep 100 & exit 0', undefined],
    ['echo forked; sleep 100 & exit 5', 'exit code 5: forked'],
  ])('%s: %s', async (script, message) => {
    const outgoing = createOutgoing({ proxy: 'http://own:9', noProxy: [] }, {})
    expect(await failureOf({ ...shell(script), outgoing }, undefined, newJob(5000))).toBe(message)
  })

  it('shows the end of what it printed, however much that was, and keeps no more', async () => {
    const before = process.memoryUsage().rss
    const print = 'for (let i = 0; i < 2000; i++) fs.writeSync(1 + (i % 2), "word ".repeat(10_000))'
    const end = 'setTimeout(() => { fs.writeSync(2, "the last words"); process.exit(9) }, 300)'
    const message = await failureOf(node(`${print}; ${end}`))
    expect(message).toMatch(/^exit code 9: \S.{0,600}the last words$/)
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * 1024 * 1024)
  })

  it.each([470, 480, 490, 7970, 7980, 7990])(
    'shows no part of a secret that stands %i characters before the end',
    async distance => {
      const print = `process.stdout.write(" some words ${SECRET}" + "${'x'.repeat(distance)}")`
      expect(await failureOf(node(`${print}; process.exitCode = 1`))).not.toMatch(/marked|0123|789/)
    },
  )

  it('that can not be started says so', async () => {
    const hook = { name: 'gone', command: ['/not/there'], timeoutMs: 1000 }
    expect(await failureOf(hook)).toMatch(/^it can't be started: .*ENOENT/)
  })

  it('gets the whole of a large job on standard input, and as many links as fit in the environment', async () => {
    const directory = await makeDirectory()
    const job = newJob(5000)
    const hook = shell('cat > "$0/job"; printf %s "$UPLOAD_URLS" > "$0/urls"', directory)
    expect(await failureOf(hook, undefined, job)).toBeUndefined()
    const { files } = JSON.parse(await readFile(join(directory, 'job'), 'utf8'))
    expect(files).toHaveLength(5000)
    const urls = (await readFile(join(directory, 'urls'), 'utf8')).split('\n')
    expect(urls.length).toBeGreaterThan(900)
    expect(urls).toEqual(job.files.slice(0, urls.length).map(file => file.url))
  })

  it('is started without a shell', async () => {
    const path = join(await makeDirectory(), '$(id);a b')
    expect(await failureOf({ name: 'test', command: ['touch', path], timeoutMs: 5000 })).toBeUndefined()
    await readFile(path)
  })

  it.each([
    ['at its time limit', 'it took longer than 0.5 s'],
    ['when the server goes down', 'the server is shutting down'],
  ])('is killed with its children %s', async (when, message) => {
    const path = join(await makeDirectory(), 'pid')
    const pid = async () => Number(await readFile(path, 'utf8').catch(() => '0'))
    const ending = new AbortController()
    const isEnded = when === 'when the server goes down'
    const hook = shell('{ sleep 60 & echo $!; wait; } > "$0"', path)
    const failed = failureOf({ ...hook, timeoutMs: isEnded ? 20_000 : 500 }, ending.signal)
    await expect.poll(pid).toBeGreaterThan(0)
    if (isEnded) ending.abort(new Error(message))
    expect(await failed).toBe(message)
    const child = await pid()
    await expect.poll(() => isRunning(child)).toBe(false)
  })

  it('is not started any more once the server goes down', async () => {
    const path = join(await makeDirectory(), 'started')
    const signal = AbortSignal.abort(new Error('the server is shutting down'))
    expect(await failureOf(shell('touch "$0"', path), signal)).toContain('shutting down')
    await expect(readFile(path)).rejects.toThrow('ENOENT')
  })
})

describe('a webhook', () => {
  const answering =
    (status: number): RequestListener =>
    (_req, res) =>
      void res.writeHead(status, { Location: '/other' }).end(status === 204 ? undefined : 'the words')

  it.each<[what: string, handle: RequestListener, message: RegExp | undefined]>([
    ['takes it', answering(204), undefined],
    ['refuses it', answering(400), /^127\.0\.0\.1:\d+ returned 400: the words\.$/],
    ['sends it elsewhere', answering(302), /^127\.0\.0\.1:\d+ returned 302 /],
    ['does not answer', () => {}, /^it took longer than 0\.3 s$/],
    ['breaks off', req => void req.socket.resetAndDestroy(), /^127\.0\.0\.1:\d+ /],
    [
      'answers without end, and is not read to it',
      (_req, res) => {
        const more = () => {
          while (res.write(Buffer.alloc(65_536, 'x')));
        }
        res.on('drain', more)
        more()
      },
      undefined,
    ],
    [
      'trickles its answer',
      (_req, res) => {
        const timer = setInterval(() => res.write('x'), 20)
        res.once('close', () => clearInterval(timer))
      },
      /^it took longer than 0\.3 s$/,
    ],
  ])('%s', async (what, handle, message) => {
    const { origin: webhook } = await serve(handle)
    const isSlow = /not answer|trickles/.test(what)
    const found = await failureOf({ name: 'test', webhook, timeoutMs: isSlow ? 300 : 10_000 })
    if (message) expect(found).toMatch(message)
    else expect(found).toBeUndefined()
  })

  it('that nobody answers at says so', async () => {
    const hook = { name: 'test', webhook: 'http://127.0.0.1:9/hook', timeoutMs: 5000 }
    expect(await failureOf(hook)).toBe("127.0.0.1:9 can't be reached: it refuses connections.")
  })
})
