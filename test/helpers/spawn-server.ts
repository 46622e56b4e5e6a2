import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { makeDirectory } from './directory.ts'
import { configIn, expectNoSecret } from './secrets.ts'

export const BIN = fileURLToPath(new URL('../../bin/upload-server.js', import.meta.url))

export interface SpawnedServer {
  readonly process: ChildProcess
  /** Empty but for what the server keeps in it. */
  readonly directory: string
  /** Every line of standard output so far. */
  readonly lines: readonly string[]
  /** The address in the first line of the log. Fails when the process ends without one. */
  readonly url: Promise<string>
  /** How it ended: the code, or the name of the signal. */
  readonly exit: Promise<number | string>
  /** What it wrote to standard error. */
  errors(): string
}

export interface SpawnOptions {
  /** Default: a new one. */
  directory?: string
  env?: Record<string, string>
}

/**
 * An environment that no configuration of the machine reaches, with everything kept below a directory, and that names the
 * configuration that lies there.
 */
export function environmentIn(directory: string, env: Record<string, string> = {}): Record<string, string> {
  const file = join(directory, 'upload-server.json')
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: directory,
    XDG_DATA_HOME: directory,
    ...(existsSync(file) && { UPLOAD_SERVER_CONFIG: file }),
    LC_ALL: 'C.UTF-8',
    ...env,
  }
}

/** Starts the built command. When the test is over, it is killed, and its log is searched for its secrets. */
export async function spawnServer(
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<SpawnedServer> {
  const directory = options.directory ?? (await makeDirectory())
  const server = runServer(args, directory, options.env)
  onTestFinished(async () => {
    server.process.kill('SIGKILL')
    await server.exit
    expectNoSecret(server.lines.join('\n') + server.errors(), configIn(directory), options.env)
  })
  return server
}

/** The same for a directory of the caller, who also ends it. */
export function runServer(
  args: readonly string[],
  directory: string,
  env?: Record<string, string>,
): SpawnedServer {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: directory,
    env: environmentIn(directory, env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  let errors = ''
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  const output = createInterface(child.stdout).on('line', line => void lines.push(line))
  const exit = once(child, 'close').then(([code, signal]): number | string => code ?? signal)
  const ended = exit.then(status => {
    throw new Error(`the server ended with ${status} instead of listening: ${errors}`)
  })
  const listening = once(output, 'line').then(([line]) => String(JSON.parse(line).url))
  const url = Promise.race([listening, ended])
  url.catch(() => {})
  return { process: child, directory, lines, url, exit, errors: () => errors }
}
