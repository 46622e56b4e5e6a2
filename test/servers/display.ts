import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

/** What sway, which refuses to run as root, runs as when the tests do. */
const NOBODY = 65534
const START_MS = 15_000

/** A display of its own with an empty clipboard. */
export interface Display {
  /** What a program needs in its environment to use it: `PATH` and the variables of the display, nothing else. */
  readonly env: NodeJS.ProcessEnv
  /** Lets another program put `bytes` into the clipboard as `type`; settles when they are there. */
  copy(type: string, bytes: Uint8Array | string): Promise<void>
  /** Ends the display and the program that owns its clipboard. Safe to call twice. */
  stop(): Promise<void>
}

/** Starts Xvfb on the first free display. Needs the Debian packages xvfb and xclip. */
export async function startX11(): Promise<Display> {
  const args = ['-displayfd', '3', '-screen', '0', '320x240x24', '-nolisten', 'tcp', '-noreset']
  const server = launch('Xvfb', args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
  const number = await firstMatch(server, server.stdio[3] as Readable, /^(\d+)\n/)
  const env = { PATH: process.env['PATH'], DISPLAY: `:${number}` }
  return {
    env,
    copy: (type, bytes) => {
      const write: Command = ['xclip', '-selection', 'clipboard', '-t', type]
      return put(write, [...write, '-o'], bytes, env)
    },
    stop: () => end(server),
  }
}

/** Starts sway without a screen, in a runtime directory of its own. Needs the Debian packages sway and wl-clipboard. */
export async function startWayland(): Promise<Display> {
  const directory = await mkdtemp(join(tmpdir(), 'upload-server-sway-'))
  const config = join(directory, 'config')
  await writeFile(config, 'xwayland disable\nexec echo "ready on $WAYLAND_DISPLAY"\n')
  await chmod(config, 0o644)
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(directory, NOBODY, NOBODY)

  const path = process.env['PATH']
  const server = launch('sway', ['-c', config], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: path,
      HOME: directory,
      XDG_RUNTIME_DIR: directory,
      WLR_BACKENDS: 'headless',
      WLR_LIBINPUT_NO_DEVICES: '1',
      WLR_RENDERER: 'pixman',
    },
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  })
  const stop = async () => {
    await end(server)
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const name = await firstMatch(server, server.stdout as Readable, /^ready on (\S+)\n/m)
    const env = { PATH: path, XDG_RUNTIME_DIR: directory, WAYLAND_DISPLAY: name }
    const copy = (type: string, bytes: Uint8Array | string) =>
      put(['wl-copy', '--type', type], ['wl-paste', '--no-newline', '--type', type], bytes, env)
    return { env, copy, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Starts a server that does not outlive this process. */
function launch(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(program, args, options)
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('close', () => process.removeListener('exit', kill))
  return child
}

/** Waits until the server has printed the pattern, and gives its first group. */
function firstMatch(server: ChildProcess, output: Readable, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = ''
    let complaints = ''
    const fail = (why: string) => {
      clearTimeout(timer)
      server.kill('SIGKILL')
      reject(new Error(`${server.spawnfile} ${why}: ${complaints.slice(-500)}`))
    }
    const timer = setTimeout(fail, START_MS, `was not ready after ${START_MS} ms`)
    server.once('error', error => fail(error.message))
    server.once('exit', code => fail(`ended with status ${code}`))
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaints += text
    })
    output.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const found = pattern.exec(printed)?.[1]
      if (found === undefined) return
      clearTimeout(timer)
      resolve(found)
    })
  })
}

type Command = readonly [program: string, ...args: string[]]

/**
 * The writing tool leaves a child in the background that serves the clipboard, and may end before the display server
 * knows of it: so the clipboard is read until it holds what was written.
 */
async function put(write: Command, read: Command, bytes: Uint8Array | string, env: NodeJS.ProcessEnv) {
  const [program, ...args] = write
  const tool = spawn(program, args, { env, stdio: ['pipe', 'ignore', 'ignore'] })
  tool.stdin.end(bytes)
  const [code] = await once(tool, 'exit')
  if (code !== 0) throw new Error(`${program} ended with status ${code}`)
  const expected = Buffer.from(bytes)
  const deadline = performance.now() + START_MS
  while (!expected.equals(await outputOf(read, env))) {
    if (performance.now() > deadline) throw new Error(`${program} put nothing into the clipboard`)
  }
}

async function outputOf([program, ...args]: Command, env: NodeJS.ProcessEnv): Promise<Buffer> {
  const tool = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const chunks: Buffer[] = []
  tool.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(tool, 'close')
  return Buffer.concat(chunks)
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  const timer = setTimeout(() => server.kill('SIGKILL'), 2000)
  await ended
  clearTimeout(timer)
}
