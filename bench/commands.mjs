/** What a command costs from its start to its end, beside a Node that does nothing. */
import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const PROGRAM = fileURLToPath(new URL('../bin/upload-server.js', import.meta.url))
/** Starts in a round: one takes as long as what disturbs the machine for a moment. */
const STARTS = 3
const BARE = 'node -e 0'

/** @returns rows: a name, `ms` from start to end, and how many `times` that is of a Node that does nothing */
export async function measureCommands(contender, settings) {
  const directory = join(settings.directory, 'commands')
  const file = join(directory, 'a.txt')
  const config = join(directory, 'config.json')
  await mkdir(directory, { recursive: true })
  await writeFile(file, 'a')
  const local = { Default: { directory: join(directory, 'files'), durable: false, serve: true } }
  await writeFile(config, JSON.stringify({ providers: { local } }))
  const run = (...args) => [PROGRAM, ...args]
  const commands = {
    'upload-server --version': () => run('--version'),
    'upload-server --help': () => run('--help'),
    'upload-server upload a.txt': () => run('upload', file, '--config', config),
    'upload-server upload --server URL a.txt': url => run('upload', file, '--server', url),
  }
  const names = Object.keys(commands).filter(name => settings.only.test(name))
  if (names.length === 0) return []
  const times = { [BARE]: [], ...Object.fromEntries(names.map(name => [name, []])) }
  const server = await startServer(contender, settings)
  // In CI, the program refuses to upload to a folder that no running server serves.
  const env = {
    ...process.env,
    CI: '',
    HOME: directory,
    XDG_DATA_HOME: directory,
    XDG_CONFIG_HOME: directory,
  }
  try {
    for (let round = 0; round < settings.rounds * STARTS; round++) {
      settings.note(`commands: round ${round + 1} of ${settings.rounds * STARTS}`)
      for (const [name, all] of Object.entries(times)) {
        const args = name === BARE ? ['-e', '0'] : commands[name](server.url)
        const began = performance.now()
        const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
        all.push(performance.now() - began)
        if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`)
      }
    }
  } finally {
    await server.stop()
  }
  const bare = median(times[BARE])
  return Object.entries(times).map(([name, all]) => ({ name, ms: median(all), times: median(all) / bare }))
}
