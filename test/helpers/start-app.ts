import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createLog } from '../../src/log.ts'
import { createGrowingMask } from '../../src/mask.ts'
import { type RunningServer, startServer } from '../../src/server/index.ts'
import { makeDirectory } from './directory.ts'
import { expectNoSecret } from './secrets.ts'

export interface TestApp {
  /** `http://127.0.0.1:…`, without a final slash. */
  readonly url: string
  readonly server: RunningServer
  /** A private folder of the test; the embedded default stores below it. */
  readonly directory: string
  /** Every line of the log so far, parsed. */
  readonly log: Record<string, unknown>[]
  /** Has the server run with another configuration. Default: the same again. */
  reload(config?: Record<string, unknown>): Promise<void>
  /** The log as it left the process. */
  rawLog(): string
  /** Paths of all files below the folder but configuration and store, temporary ones included, relative to it and sorted. */
  files(): Promise<string[]>
}

export interface TestAppOptions {
  /** The configuration file; left out: the embedded default. `server.port` is 0 unless it is given. */
  config?: Record<string, unknown>
  env?: Record<string, string>
  /** Default: a new one. */
  directory?: string
  /** Writes what has to be in the folder when the server starts. */
  prepare?: (directory: string) => Promise<unknown>
}

/** Starts the real server on a free port. When the test is over, it stops, its log is searched for its secrets, and its folder goes. */
export async function startApp(options: TestAppOptions = {}): Promise<TestApp> {
  return start(options.directory ?? (await makeDirectory()), options, onTestFinished)
}

/** One server for all tests of a `describe` that leave nothing behind in it, such as a table of what is refused. */
export function shareApp(options: TestAppOptions = {}): () => TestApp {
  const ends: (() => unknown)[] = []
  let app: TestApp
  beforeAll(async () => {
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'upload-server-test-')))
    if (!options.directory) ends.push(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }))
    app = await start(directory, options, end => ends.push(end))
  })
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })
  return () => app
}

async function start(
  directory: string,
  options: TestAppOptions,
  onEnd: (end: () => Promise<void>) => unknown,
): Promise<TestApp> {
  await options.prepare?.(directory)
  const file = join(directory, 'upload-server.json')
  const config = options.config ?? {}
  const env = { XDG_DATA_HOME: join(directory, 'data'), ...options.env }
  const configs: unknown[] = []
  const load = async (wanted: Record<string, unknown>) => {
    configs.push(wanted)
    const server = { port: 0, ...(wanted['server'] as object | undefined) }
    await writeFile(file, JSON.stringify({ ...wanted, server }))
    return loadConfig({ env, platform: 'linux', cwd: directory, file })
  }
  const loaded = await load(config)

  let raw = ''
  const { mask, learn } = createGrowingMask()
  learn(loaded.secrets)
  const stream = {
    write(line: string) {
      raw += line
    },
  }
  const logger = await createLog({ level: loaded.settings.log.level, mask, stream })
  const running = await startServer(loaded, { logger, mask, env }, 0)
  onEnd(async () => {
    await running.stop()
    expectNoSecret(raw, configs, options.env)
  })

  return {
    url: running.url,
    server: running,
    directory,
    get log() {
      return raw
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
    },
    rawLog: () => raw,
    async reload(next = config) {
      await running.reload(await load(next))
    },
    files: () => listFiles(directory),
  }
}

async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => !entry.isDirectory() && !/^upload-server\.json$|^store\.db/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort()
}
