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
import { serve } from './sources/servers.ts'

const SECRET = 'marked-secret-0123456789'
const deps = { env: { PATH: process.env['PATH'] }, mask: createMask([SECRET]) }
const never = new AbortController().signal

/** The signal of a process that is shut down after some time. */
function endsIn(ms: number): AbortSignal {
  const ending = new AbortController()
  const end = () => ending.abort(new Error('the server is shutting down'))
  if (ms === 0) end()
  else setTimeout(end, ms)
  return ending.signal
}

function newJob(files = 1): Upload {
  return {
    id: 'job-1',
    state: 'stored',
    createdAt: 0,
    owner: 'me',
    requestId: 'r1',
    caller: 'loopback',
    destination: 'local/Default',
    origins: ['a.png'],
    files: Array.from({ length: files }, (_, index) => ({
      index,
      origin: 'a.png',
      url: `https://pictures.example/2026/11/a-long-name-of-a-picture-${index}.png`,
      key: 'a.png',
      size: 1,
      contentType: 'image/png',
      sha256: 'a'.repeat(64),
      destination: 'local/Default',
      location: '/srv/',
    })),
    failed: [],
    endedAt: undefined,
    steps: [],
    attempts: 0,
    problem: undefined,
  }
}

function shell(script: string, timeoutMs = 10_000): Hook {
  return { name: 'test', command: ['sh', '-c', script], timeoutMs }
}

function node(script: string): Hook {
  return { name: 'test', command: [process.execPath, '-e', script], timeoutMs: 20_000 }
}

/** Why a hook failed. */
async function failureOf(hook: Hook, signal = never, job = newJob()): Promise<string> {
  return runHook(hook, job, deps, signal).then(
    () => 'it did not fail',
    (error: Error) => error.message,
  )
}

it('a command is told of the proxy of the server', async () => {
  const outgoing = createOutgoing({ proxy: 'http://own:9', noProxy: [] }, {})
  const hook = shell('[ "$https_proxy" = http://own:9 ] && [ "$UPLOAD_COUNT" = 1 ]')
  expect(await failureOf({ ...hook, outgoing })).toBe('it did not fail')
})

describe('a command that fails', () => {
  it.each([
    ['exit 3', 'exit code 3'],
    ['echo no luck; exit 1', 'exit code 1: no luck'],
    ['echo one; echo two >&2; exit 1', 'exit code 1: one two'],
    ['kill -TERM $$', 'it was killed by SIGTERM'],
    ['printf "\\033[31mred\\033[0m\\007 \\302\\233 end"; exit 1', 'exit code 1: red end'],
    ['printf "\\344\\270"; sleep 0.1; printf "\\255"; exit 1', 'exit code 1: 中'],
    [`echo "the key is ${SECRET}"; exit 1`, 'exit code 1: the key is [secret]'],
  ])('%s: %s', async (script, message) => {
    expect(await failureOf(shell(script))).toBe(message)
  })

  it('shows the end of what it printed, however much that was, and keeps no more', async () => {
    const before = process.memoryUsage().rss
    const print = 'for (let i = 0; i < 2000; i++) fs.writeSync(1 + (i % 2), "word ".repeat(10_000))'
    const end = 'setTimeout(() => { fs.writeSync(2, "the last words"); process.exit(9) }, 300)'
    const message = await failureOf(node(`${print}; ${end}`))
    expect(message).toMatch(/^exit code 9: \S.*the last words$/)
    expect(message.length).toBeLessThan(600)
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * 1024 * 1024)
  })

  it.each([470, 480, 490, 7970, 7980, 7990])(
    'shows no part of a secret that stands %i characters before the end',
    async distance => {
      const filler = 'x'.repeat(distance)
      const print = `process.stdout.write(" some words ${SECRET}" + "${filler}")`
      expect(await failureOf(node(`${print}; process.exitCode = 1`))).not.toMatch(/marked|0123|789/)
    },
  )

  it('can not be started', async () => {
    const hook = { name: 'gone', command: ['/not/there'], timeoutMs: 1000 }
    expect(await failureOf(hook)).toMatch(/^it can't be started: .*ENOENT/)
  })
})

describe('a command', () => {
  it('need not read the job, however large that is', async () => {
    expect(await failureOf(shell('exit 0'), never, newJob(5000))).toBe('it did not fail')
    expect(await failureOf(shell('exec 0<&-; sleep 0.1; exit 4'), never, newJob(5000))).toBe('exit code 4')
  })

  it('gets the whole of a large job on standard input, and as many links as fit in the environment', async () => {
    const directory = await makeDirectory()
    const script =
      'cat > "$0/job"; printf %s "$UPLOAD_URLS" > "$0/urls"; printf %s "$UPLOAD_COUNT" > "$0/count"'
    const command = ['sh', '-c', script, directory]
    const job = newJob(5000)
    await runHook({ name: 'test', command, timeoutMs: 10_000 }, job, deps, never)
    const { files } = JSON.parse(await readFile(join(directory, 'job'), 'utf8'))
    expect(files).toHaveLength(5000)
    const urls = (await readFile(join(directory, 'urls'), 'utf8')).split('\n')
    expect(urls.length).toBeGreaterThan(900)
    expect(urls).toEqual(job.files.slice(0, urls.length).map(file => file.url))
    expect(await readFile(join(directory, 'count'), 'utf8')).toBe('5000')
  })

  it('is started without a shell', async () => {
    const directory = await makeDirectory()
    const command = ['touch', join(directory, '$(id);a b')]
    await runHook({ name: 'test', command, timeoutMs: 5000 }, newJob(), deps, never)
    await readFile(join(directory, '$(id);a b'))
  })

  it.each(['exit 0', 'exit 5'])(
    'that leaves a child behind which holds its output is over when it ends itself: %s',
    async end => {
      const message = await failureOf(shell(`echo forked; sleep 100 & ${end}`))
      expect(message).toBe(end === 'exit 0' ? 'it did not fail' : 'exit code 5: forked')
    },
  )
})

describe('what takes too long is killed with its children', () => {
  const script = 'sleep 60 & echo $!; wait'

  async function expectKilled(stop: (hook: Hook) => Promise<string>): Promise<string> {
    const directory = await makeDirectory()
    const hook = shell(`{ ${script}; } > "${directory}/pid"`, 20_000)
    const message = await stop(hook)
    const pid = Number(await readFile(join(directory, 'pid'), 'utf8'))
    expect(pid).toBeGreaterThan(0)
    await expect.poll(() => isRunning(pid)).toBe(false)
    return message
  }

  it('at its time limit', async () => {
    expect(await expectKilled(hook => failureOf({ ...hook, timeoutMs: 400 }))).toBe(
      'it took longer than 0.4 s',
    )
  })

  it('when the server goes down', async () => {
    const message = await expectKilled(hook => failureOf(hook, endsIn(400)))
    expect(message).toBe('the server is shutting down')
  })

  it('nothing is started any more once the server goes down', async () => {
    const directory = await makeDirectory()
    const message = await failureOf(shell(`touch "${directory}/started"`), endsIn(0))
    expect(message).toContain('shutting down')
    await expect(readFile(join(directory, 'started'))).rejects.toThrow('ENOENT')
  })
})

describe('a webhook', () => {
  const call = async (handle: RequestListener, timeoutMs = 5000, signal = never) =>
    failureOf({ name: 'test', webhook: (await serve(handle)).origin, timeoutMs }, signal)

  it.each([
    ['takes it', 204, 'it did not fail'],
    ['refuses it', 400, /^127\.0\.0\.1:\d+ returned 400: the words\.$/],
    ['sends it elsewhere', 302, /^127\.0\.0\.1:\d+ returned 302 /],
  ])('%s', async (_what, status, message) => {
    const answer = await call((_req, res) => {
      res.writeHead(status, { Location: '/other' }).end(status === 204 ? undefined : 'the words')
    })
    expect(answer).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })

  it('that does not answer is left at its time limit', async () => {
    expect(await call(() => {}, 300)).toBe('it took longer than 0.3 s')
  })

  it('that answers without end is not read to it', async () => {
    const endless: RequestListener = (_req, res) => {
      const more = () => {
        while (res.write(Buffer.alloc(65_536, 'x')));
      }
      res.on('drain', more)
      more()
    }
    expect(await call(endless)).toBe('it did not fail')
  })

  it('that trickles its answer is left at its time limit', async () => {
    const trickle: RequestListener = (_req, res) => {
      const timer = setInterval(() => res.write('x'), 20)
      res.once('close', () => clearInterval(timer))
    }
    expect(await call(trickle, 300)).toBe('it took longer than 0.3 s')
  })

  it('that nobody answers at says so', async () => {
    const hook = { name: 'test', webhook: 'http://127.0.0.1:9/hook', timeoutMs: 5000 }
    expect(await failureOf(hook)).toBe("127.0.0.1:9 can't be reached: it refuses connections.")
  })
})
