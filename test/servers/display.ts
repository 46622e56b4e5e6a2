import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, startDaemon } from './daemon.ts'

/** What sway, which refuses to run as root, runs as when the tests do. */
const NOBODY = 65534
const COPY_MS = 15_000

/** A display of its own with an empty clipboard. */
export interface Display {
  /** What a program needs in its environment to use it: `PATH` and the variables of the display, nothing else. */
  readonly env: NodeJS.ProcessEnv
  /** Lets another program put `bytes` into the clipboard as `type`; settles when they are there. */
  copy(type: string, bytes: Uint8Array | string): Promise<void>
  /** Ends the display and the program that owns its clipboard. Safe to call twice. */
  stop(): Promise<void>
}

const find = (daemon: Daemon, pattern: RegExp) => pattern.exec(daemon.output())?.[1]

/** Starts Xvfb on the first free display. Needs the Debian packages xvfb and xclip. */
export async function startX11(): Promise<Display> {
  const [number, args] = [/^(\d+)\n/m, ['-screen', '0', '320x240x24', '-nolisten', 'tcp', '-noreset']]
  const server = await startDaemon('Xvfb', ['-displayfd', '1', ...args], { until: number })
  const env = { PATH: process.env['PATH'], DISPLAY: `:${find(server, number)}` }
  return {
    env,
    copy: (type, bytes) => {
      const write: Command = ['xclip', '-selection', 'clipboard', '-t', type]
      return put(write, [...write, '-o'], bytes, env)
    },
    stop: server.stop,
  }
}

/** Starts sway without a screen, in a runtime directory of its own. Needs the Debian packages sway and wl-clipboard. */
export async function startWayland(): Promise<Display> {
  const directory = await mkdtemp(join(tmpdir(), 'upload-server-sway-'))
  const config = join(directory, 'config')
  const ready = /^ready on (\S+)\n/m
  await writeFile(config, 'xwayland disable\nexec echo "ready on $WAYLAND_DISPLAY"\n', { mode: 0o644 })
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(directory, NOBODY, NOBODY)
  const server = await startDaemon('sway', ['-c', config], {
    until: ready,
    account: isRoot ? { uid: NOBODY, gid: NOBODY } : undefined,
    env: {
      HOME: directory,
      XDG_RUNTIME_DIR: directory,
      WLR_BACKENDS: 'headless',
      WLR_LIBINPUT_NO_DEVICES: '1',
      WLR_RENDERER: 'pixman',
    },
  })
  const runtime = { XDG_RUNTIME_DIR: directory, WAYLAND_DISPLAY: find(server, ready) }
  const env = { PATH: process.env['PATH'], ...runtime }
  return {
    env,
    copy: (type, bytes) =>
      put(['wl-copy', '--type', type], ['wl-paste', '--no-newline', '--type', type], bytes, env),
    async stop() {
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
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
  const deadline = performance.now() + COPY_MS
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
