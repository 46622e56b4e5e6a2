import { execFile } from 'node:child_process'
import { chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

const run = promisify(execFile)
const ROOT = '/usr/lib/postgresql'
const NOBODY = 65534

export interface PostgresServer {
  /** `postgres://app:pgpass@127.0.0.1:…/app` */
  readonly url: string
  /** Makes an empty database and gives its address. */
  createDatabase(name: string): Promise<string>
  halt(): Promise<void>
  resume(): Promise<void>
  /** Has it hang: it keeps its connections and its port, and says nothing. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  stop(): Promise<void>
}

/** Where Debian keeps the programs of the newest PostgreSQL that is installed; undefined when there is none. */
export async function findPostgres(): Promise<string | undefined> {
  const versions = await readdir(ROOT).catch(() => [])
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]
  return newest && join(ROOT, newest, 'bin')
}

/** Starts a PostgreSQL of its own on a free port. It refuses to run as root, so then it runs as `nobody`. */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = await findPostgres()
  if (!bin) throw new Error('needs PostgreSQL: apt-get install postgresql')
  const directory = await mkdtemp(join(tmpdir(), 'upload-server-pg-'))
  const asRoot = process.getuid?.() === 0
  const account = asRoot ? { uid: NOBODY, gid: NOBODY } : undefined
  await writeFile(join(directory, 'password'), 'pgpass')
  await mkdir(join(directory, 'sock'))
  if (asRoot) for (const path of ['', 'password', 'sock']) await chown(join(directory, path), NOBODY, NOBODY)
  const data = join(directory, 'data')
  const init = ['-D', data, '-U', 'app', '-A', 'scram-sha-256', `--pwfile=${join(directory, 'password')}`]
  await run(join(bin, 'initdb'), [...init, '-E', 'UTF8', '--no-locale', '-N'], { ...account, cwd: directory })
  const port = await findFreePorts()

  async function start() {
    const settings = [
      'listen_addresses=127.0.0.1',
      `port=${port}`,
      `unix_socket_directories=${join(directory, 'sock')}`,
      'shared_buffers=32MB',
      'fsync=off', // the machine does not lose power while tests run
    ]
    const args = ['-D', data, ...settings.flatMap(one => ['-c', one])]
    const until = /ready to accept connections/
    const server = await startDaemon(join(bin as string, 'postgres'), args, {
      until,
      account,
      endsBy: 'SIGINT',
    })
    /** To the server and the processes that serve its connections. */
    const signal = async (name: 'SIGSTOP' | 'SIGCONT') => {
      const { stdout } = await run('ps', ['-o', 'pid=', '--ppid', String(server.pid)])
      for (const pid of [server.pid, ...stdout.trim().split(/\s+/)]) {
        try {
          process.kill(Number(pid), name)
        } catch {
          // It has ended since.
        }
      }
    }
    return { end: server.stop, signal }
  }

  let running = await start()
  const urlOf = (name: string) => `postgres://app:pgpass@127.0.0.1:${port}/${name}`
  return {
    url: urlOf('postgres'),
    async createDatabase(name) {
      const env = { ...process.env, PGPASSWORD: 'pgpass' }
      await run(join(bin, 'createdb'), ['-h', '127.0.0.1', '-p', String(port), '-U', 'app', name], { env })
      return urlOf(name)
    },
    halt: () => running.end(),
    async resume() {
      running = await start()
    },
    freeze: () => running.signal('SIGSTOP'),
    thaw: () => running.signal('SIGCONT'),
    async stop() {
      await running.end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
