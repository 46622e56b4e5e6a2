import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

/** Whom servers run as: this account, or `nobody` when that is root. */
const ACCOUNT = userInfo().uid === 0 ? { uid: 65_534, gid: 65_534 } : userInfo()

export interface DavServer {
  readonly port: number
  /** Address of the collection, without a slash at its end. Everybody may read there. */
  readonly url: string
  readonly username: string
  readonly password: string
  /** Where the collection lies on the disk. */
  readonly directory: string
  close(): Promise<void>
}

export interface DavSetup {
  /** Private folder with `dav` and `tmp` in it. */
  readonly home: string
  readonly port: number
  readonly username: string
  readonly password: string
}

/**
 * Starts a server with a WebDAV folder on 127.0.0.1.
 *
 * @param configure gives its configuration
 * @param argumentsOf gives its arguments; `file` holds the configuration
 */
export async function startDavServer(
  program: string,
  configure: (setup: DavSetup) => string,
  argumentsOf: (home: string, file: string) => string[],
): Promise<DavServer> {
  const home = await mkdtemp(join(tmpdir(), `upload-server-${program}-`))
  const [directory, file] = [join(home, 'dav'), join(home, 'server.conf')]
  const port = await findFreePorts()
  const setup = { home, port, username: 'jörg', password: 'pa:ss "wörd"' }
  for (const folder of [directory, join(home, 'tmp'), join(home, 'locks')]) await mkdir(folder)
  await writeFile(file, configure(setup))
  await writeFile(join(home, 'htpasswd'), passwordLine(setup), { mode: 0o600 })
  await writeFile(join(home, 'htdigest'), digestLine(setup), { mode: 0o600 })
  execFileSync('chown', ['-R', `${ACCOUNT.uid}:${ACCOUNT.gid}`, home])
  const daemon = await startDaemon(program, argumentsOf(home, file), { port, account: ACCOUNT })
  return {
    ...setup,
    url: `http://127.0.0.1:${port}/dav`,
    directory,
    async close() {
      await daemon.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
}

function passwordLine({ username, password }: DavSetup): string {
  return `${username}:{SHA}${createHash('sha1').update(password).digest('base64')}\n`
}

function digestLine({ username, password }: DavSetup): string {
  const hash = createHash('md5').update(`${username}:Dateien für alle:${password}`)
  return `${username}:Dateien für alle:${hash.digest('hex')}\n`
}
