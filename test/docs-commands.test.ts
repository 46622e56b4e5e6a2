import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { DOCUMENTS, readBlocks } from './helpers/documents.ts'
import { findFreePorts } from './helpers/free-port.ts'
import { needs } from './helpers/needs.ts'
import { makePicture } from './helpers/picture.ts'
import { BIN, environmentIn } from './helpers/spawn-server.ts'
import { makeDirectory } from './helpers/start-app.ts'
import { startX11 } from './servers/display.ts'

const TO_RUN = DOCUMENTS.filter(
  ({ file, blocks }) => file !== 'README.md' && blocks.some(({ kind }) => isRunHere(kind)),
)

it.for(TO_RUN)('every command of $file works', { timeout: 60_000 }, async ({ blocks }, context) => {
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
  for (const { kind, code } of blocks) {
    const file = / file=(\S+)$/.exec(kind)?.[1]
    if (file !== undefined) await writeFile(join(desk.directory, file), code)
    if (kind === 'sh server') await desk.serve(code)
    else if (kind === 'sh') await desk.run(code)
    else if (kind === 'yaml') for (const script of scriptsOf(code)) await desk.run(script)
  }
})

function isRunHere(kind: string): boolean {
  return kind === 'sh' || kind === 'sh server'
}

/** What a job of GitHub Actions (`run: |`) or GitLab CI (`- curl …` below `script:`) runs. */
function scriptsOf(yaml: string): string[] {
  const [, block] = /^ +run: \|\n((?: {4}.*\n)+)/m.exec(yaml) ?? []
  const [, list] = /^ +script:\n((?: +- .*\n)+)/m.exec(yaml) ?? []
  return [block, list?.replace(/^ +- /gm, '')].filter(text => text !== undefined)
}

it('every answer in README.md is what its command prints', { timeout: 60_000 }, async context => {
  needs(context, 'curl', 'curl')
  needs(context, 'Xvfb', 'xvfb')
  needs(context, 'xclip', 'xclip')
  const desk = await prepareDesk()
  const folder = (directory: string) => ({ directory, serve: true })
  const config = {
    default: 'local/Default',
    sources: { url: { allowPrivate: true } },
    providers: { local: { Default: folder('default'), blog: folder('blog') } },
  }
  await writeFile(join(desk.directory, 'upload-server.json'), JSON.stringify(config))
  await desk.serve('upload-server --port 36677\n')
  const link = (await desk.run('upload-server upload --server http://127.0.0.1:36677 picture.png\n')).trim()
  const blocks = readBlocks(await readFile('README.md', 'utf8'))
  expect(blocks.filter(({ kind }) => kind === 'console').length).toBeGreaterThanOrEqual(6)
  for (const { kind, code } of blocks) {
    if (kind === 'sh') expect(await desk.run(code)).toContain('"success":true')
    if (kind !== 'console') continue
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

/** A reader at work: a folder with what the documents name, the program installed, a desktop, the port to themselves. */
async function prepareDesk() {
  const directory = await makeDirectory()
  const display = await startX11()
  onTestFinished(() => display.stop())
  await display.copy('image/png', makePicture())
  const port = String(await findFreePorts())
  const here = (code: string) =>
    code.replaceAll('https://img.example.com', `http://127.0.0.1:${port}`).replaceAll('36677', port)

  const bin = join(directory, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'upload-server'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`, {
    mode: 0o755,
  })
  // Stands in for the mouse: it "takes" a picture that is there.
  await writeFile(join(bin, 'flameshot'), '#!/bin/sh\ncat picture.png\n', { mode: 0o755 })
  await mkdir(join(directory, 'screenshots'))
  for (const name of ['picture.png', 'screenshot.png', 'screenshots/first.png', 'screenshots/second.png'])
    await writeFile(join(directory, name), makePicture())
  await writeFile(join(directory, 'photo.jpg'), makePicture())
  await writeFile(
    join(directory, 'data.json'),
    here(await readFile('test/fixtures/picgo/picgo-desktop.json', 'utf8')),
  )
  const env = environmentIn(directory, {
    ...display.env,
    PATH: `${bin}:${process.env['PATH']}`,
    UPLOAD_SERVER_PORT: port,
    KEY: 'key',
    UPLOAD_KEY: 'key',
    UPLOAD_URL: here('https://img.example.com'),
    GITHUB_RUN_ID: '1',
    GITHUB_RUN_ATTEMPT: '1',
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
