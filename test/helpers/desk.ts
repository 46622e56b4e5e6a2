import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, type TestContext } from 'vitest'
import { startX11 } from '../servers/display.ts'
import { makeDirectory } from './directory.ts'
import { findFreePorts } from './free-port.ts'
import { needs } from './needs.ts'
import { makePicture } from './picture.ts'
import { share } from './share.ts'
import { BIN, environmentIn } from './spawn-server.ts'

/** What the commands of the documents use. */
export function needsDesk(context: TestContext): void {
  for (const [program, debianPackage] of [
    ['curl', 'curl'],
    ['jq', 'jq'],
    ['openssl', 'openssl'],
    ['Xvfb', 'xvfb'],
    ['xclip', 'xclip'],
  ] as const)
    needs(context, program, debianPackage)
}

/** Blocks that `scriptsOf` reads. */
export const JOBS = ['yaml', 'text']

/**
 * What a job of GitHub Actions (`run: |`), GitLab CI (`- |` or `- curl …` below `script:`), Woodpecker, Buildkite (below `commands:`) or
 * Jenkins (`sh '…'`) runs.
 */
export function scriptsOf(job: string): string[] {
  const [, block] = /^ +run: \|\n((?: {4}.*\n)+)/m.exec(job) ?? []
  const [, lines] = /^ +script:\n +- \|\n((?: {6}.*\n)+)/m.exec(job) ?? []
  const [, list] = /^ +(?:script|commands):\n((?: +- (?!\|\n).*\n)+)/m.exec(job) ?? []
  const [, command] = /^ +sh '(.*)'$/m.exec(job) ?? []
  return [block, lines, list?.replace(/^ +- /gm, ''), command].filter(text => text !== undefined)
}

/** What the commands that ask a running server have in them. */
const NEEDS_SERVER = /36677|https:|UPLOAD_SERVER_URL|heartbeat/

const shareDisplay = share(startX11, display => display.stop())

/** A CI host, and no pull request: in CI, the program refuses to upload to a folder that no running server serves. */
const CI_HOST = { JENKINS_URL: 'http://127.0.0.1' }

/** A reader at work: a folder with what the documents name, the program installed, a desktop, the port to themselves. */
export async function prepareDesk(more: Record<string, string> = {}) {
  const directory = await makeDirectory()
  const display = await shareDisplay()
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
  await writeFile(join(directory, 'token.jwt'), 'e30.e30.c2ln\n')
  await writeFile(join(directory, 'photo.jpg'), makePicture())
  await mkdir(join(directory, 'notes'))
  await writeFile(join(directory, 'notes/photo.jpg'), makePicture())
  await writeFile(join(directory, 'notes/trip.md'), '# Trip\n\n![](photo.jpg)\n')
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
    UPLOAD_SERVER_URL: here('https://img.example.com'),
    GITHUB_STEP_SUMMARY: join(directory, 'summary.md'),
    GITHUB_OUTPUT: join(directory, 'output'),
  })
  const start = (code: string, args: readonly string[] = ['-euo', 'pipefail']) => {
    const child = spawn('bash', [...args, '-c', here(code)], {
      cwd: directory,
      env: { ...env, ...(/[ -]comment\b/.test(code) && CI_HOST), ...more },
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
    while (!(await isReady(port))) {
      if (started.child.exitCode !== null) expect.fail(`${code}ended: ${started.printed()}`)
      await sleep(20)
    }
  }
  const run = async (code: string) => {
    if (server === undefined && NEEDS_SERVER.test(code)) await serve('upload-server --port 36677\n')
    const { status, printed } = await finish(start(code))
    expect(status, `${code}${printed}`).toBe(0)
    return printed
  }
  return {
    directory,
    port,
    serve,
    /** Runs commands that have to work. @returns what they print */
    run,
    /** Runs commands as they are, in a shell without options. */
    attempt: (code: string) => finish(start(code, [])),
  }
}

async function finish({ child, printed }: { child: ChildProcess; printed(): string }) {
  const closed = once(child, 'close')
  const [status] = (await once(child, 'exit')) as [number | null]
  await Promise.race([closed, sleep(500)]) // what it leaves behind, such as xclip, keeps the output open
  return { status, printed: printed() }
}

/** Only then is there a database that a command can read. */
async function isReady(port: string): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/ready`)).ok
  } catch {
    return false
  }
}
