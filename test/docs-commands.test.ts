import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { findFreePorts } from './helpers/free-port.ts'
import { needs } from './helpers/needs.ts'
import { makePicture } from './helpers/picture.ts'
import { BIN, environmentIn } from './helpers/spawn-server.ts'
import { makeDirectory } from './helpers/start-app.ts'
import { startX11 } from './servers/display.ts'

const DOCUMENTS = ['cli', 'getting-started', 'moving', 'recipes', 'reliability', 'troubleshooting']

/** What would replace the packages these very tests run with. `.ci/run` runs it in its section "installed from the clone". */
const RUN_ELSEWHERE = 'npm ci\nnpm run build\nnpm install --global .\n'

it.for(DOCUMENTS)('every command of docs/%s.md works', { timeout: 60_000 }, async (document, context) => {
  for (const [program, debianPackage] of [
    ['curl', 'curl'],
    ['jq', 'jq'],
    ['openssl', 'openssl'],
    ['uuidgen', 'uuid-runtime'],
    ['Xvfb', 'xvfb'],
    ['xclip', 'xclip'],
  ] as const)
    needs(context, program, debianPackage)
  const desk = await prepareDesk()
  let ran = 0
  for (const { kind, code } of readBlocks(await readFile(`docs/${document}.md`, 'utf8'))) {
    const file = / file=(\S+)$/.exec(kind)?.[1]
    if (file !== undefined) await writeFile(join(desk.directory, file), code)
    if (!/^sh\b/.test(kind) || code === RUN_ELSEWHERE) continue
    if (kind === 'sh server') await desk.serve(code)
    else await desk.run(code)
    ran++
  }
  expect(ran).toBeGreaterThan(0)
})

it('every answer in README.md is what its command prints', { timeout: 60_000 }, async context => {
  needs(context, 'curl', 'curl')
  needs(context, 'Xvfb', 'xvfb')
  needs(context, 'xclip', 'xclip')
  const desk = await prepareDesk()
  await desk.serve('UPLOAD_SERVER__SOURCES__URL__ALLOWPRIVATE=true upload-server --port 36677\n')
  const link = (await desk.run('upload-server upload --server http://127.0.0.1:36677 picture.png\n')).trim()
  const blocks = readBlocks(await readFile('README.md', 'utf8')).filter(({ kind }) => kind === 'console')
  expect(blocks.length).toBeGreaterThanOrEqual(6)
  for (const { code } of blocks) {
    const [, command = '', answer = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(code) ?? []
    const here = command.replace('https://example.com/other.png', link).replaceAll('/home/me', desk.directory)
    const printed = await desk.run(here.replace('curl ', 'curl -sS '))
    expect(printed.replaceAll(desk.directory, '/home/me').trim()).toMatch(toPattern(answer.trim()))
  }
})

/** What an answer in a document stands for: any name, date, size and port of a stored file, and anything for an ellipsis. */
function toPattern(answer: string): RegExp {
  const pattern = answer
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/[\w-]+-[0-9a-f]{8}\b/g, '[\\w-]+-[0-9a-f]{8}')
    .replaceAll('/2026/11/', '/\\d{4}/\\d{2}/')
    .replace(/"size":\d+/g, '"size":\\d+')
    .replace(/"sha256":"\w+/g, '"sha256":"\\w+')
    .replaceAll('127\\.0\\.0\\.1:36677', '127\\.0\\.0\\.1:\\d+')
    .replaceAll('…', '.*')
  return new RegExp(`^${pattern}$`)
}

it('docs/troubleshooting.md has every error code', async () => {
  const source = await readFile('src/errors.ts', 'utf8')
  const codes = [...source.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, code]) => code)
  const document = await readFile('docs/troubleshooting.md', 'utf8')
  expect([...document.matchAll(/^### (\w+)$/gm)].map(([, code]) => code)).toEqual(codes)
})

/** The fenced blocks of a document. `sh` is a command, `sh server` one that keeps running, `… file=NAME` a file to save. */
function readBlocks(document: string): { kind: string; code: string }[] {
  const blocks = document.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)
  return [...blocks].map(([, kind = '', code = '']) => ({ kind, code }))
}

/** A reader at work: a folder with what the documents name, the program installed, a desktop, the port to themselves. */
async function prepareDesk() {
  const directory = await makeDirectory()
  const display = await startX11()
  onTestFinished(() => display.stop())
  await display.copy('image/png', makePicture())
  const port = String(await findFreePorts())
  const here = (code: string) => code.replaceAll('36677', port)

  const bin = join(directory, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'upload-server'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`, {
    mode: 0o755,
  })
  // Stands in for the mouse: it "takes" a picture that is there.
  await writeFile(join(bin, 'flameshot'), '#!/bin/sh\ncat picture.png\n', { mode: 0o755 })
  await writeFile(join(directory, 'picture.png'), makePicture())
  await writeFile(join(directory, 'photo.jpg'), makePicture())
  await writeFile(
    join(directory, 'data.json'),
    here(await readFile('test/fixtures/picgo/picgo-desktop.json', 'utf8')),
  )
  const env = environmentIn(directory, {
    ...display.env,
    PATH: `${bin}:${process.env['PATH']}`,
    UPLOAD_SERVER_PORT: port,
    GITHUB_STEP_SUMMARY: join(directory, 'summary.md'),
  })
  const start = (code: string) => {
    const args = ['-euo', 'pipefail', '-c', here(code)]
    const child = spawn('bash', args, {
      cwd: directory,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', chunk => {
        printed += chunk
      })
    return { child, printed: () => printed }
  }

  let server: ChildProcess | undefined
  const stop = async () => {
    if (server?.pid === undefined || server.exitCode !== null) return
    process.kill(-server.pid, 'SIGKILL')
    await once(server, 'exit')
    server = undefined
  }
  onTestFinished(stop)

  const serve = async (code: string) => {
    await stop()
    const started = start(code)
    server = started.child
    while (!(await isAlive(port))) {
      if (started.child.exitCode !== null) expect.fail(`${code}ended: ${started.printed()}`)
      await sleep(20)
    }
  }
  const run = async (code: string) => {
    if (server === undefined) await serve('upload-server --port 36677\n')
    const { child, printed } = start(code)
    const closed = once(child, 'close')
    const [status] = await once(child, 'exit')
    await Promise.race([closed, sleep(500)]) // what it leaves behind, such as xclip, keeps the output open
    expect(status, `${code}${printed()}`).toBe(0)
    return printed()
  }
  return { directory, serve, run }
}

async function isAlive(port: string): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/heartbeat`)).ok
  } catch {
    return false
  }
}
