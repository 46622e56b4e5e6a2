import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

const LOOPBACK = fileURLToPath(new URL('loopback.cjs', import.meta.url))
const PROGRAM = fileURLToPath(import.meta.resolve('emulate/cli'))

export interface Emulate {
  readonly port: number
  /** Of the API. */
  readonly url: string
  /** Of the owner of all repositories. */
  readonly token: string
  /** One that nobody gave out: emulate takes it for a user without rights where GitHub answers 401. */
  readonly wrongToken: string
  close(): Promise<void>
}

/** Starts emulate's stand-in for GitHub's API on 127.0.0.1. */
export async function startEmulate(): Promise<Emulate> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-emulate-'))
  const port = await findFreePorts()
  const token = 'ghp_of-octo-0123456789'
  const repos = [{ owner: 'octo', name: 'hidden', auto_init: true, private: true }]
  const seed = {
    tokens: { [token]: { login: 'octo', scopes: ['repo'] } },
    // Whoever has an unknown token becomes the first of the users.
    github: { users: [{ login: 'stranger' }, { login: 'octo' }], repos },
  }
  const file = join(home, 'seed.yaml')
  await writeFile(file, JSON.stringify(seed))
  const args = ['--require', LOOPBACK, PROGRAM, 'start', '--service', 'github', '--port', String(port)]
  const daemon = await startDaemon(process.execPath, [...args, '--seed', file], { port })
  const close = async () => {
    await daemon.stop()
    await rm(home, { recursive: true, force: true })
  }
  if (await isOpen(port, '127.0.0.2')) {
    await close()
    throw new Error('emulate listens beyond 127.0.0.1')
  }
  return { port, url: `http://127.0.0.1:${port}`, token, wrongToken: 'ghp_of-nobody-9876543210', close }
}

/** All of 127.0.0.0/8 leads to this machine: what listens on every address listens on 127.0.0.2, too. */
async function isOpen(port: number, host: string): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
