import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../helpers/free-port.ts'
import { readConfiguration } from './configuration.ts'
import { type Daemon, startDaemon } from './daemon.ts'

/** For `needsAll`. */
export const PROFTPD_NEEDS = [
  ['proftpd', 'proftpd-core'],
  ['/usr/lib/proftpd/mod_tls.so', 'proftpd-mod-crypto'],
  ['openssl', 'openssl'],
  ['ssh-keygen', 'openssh-client'],
] as const

/** Whom ProFTPD runs as and files belong to: this account, or `nobody` when that is root. */
const ACCOUNT =
  userInfo().uid === 0
    ? { name: 'nobody', group: 'nogroup', uid: 65_534, gid: 65_534 }
    : { name: userInfo().username, group: undefined, uid: userInfo().uid, gid: userInfo().gid }

export interface ProFtpd {
  readonly port: number
  readonly username: string
  readonly password: string
  /** Where a login starts. */
  readonly directory: string
  /** Ends every connection as a crash would. */
  killSessions(): void
  close(): Promise<void>
}

/**
 * Starts ProFTPD on 127.0.0.1 with one login that is no account of the machine.
 *
 * @param configure makes what it needs in the private folder `home` and gives further lines of the configuration
 */
export async function startProFtpd(
  configure: (home: string) => string[] | Promise<string[]>,
): Promise<ProFtpd & { readonly home: string }> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-proftpd-'))
  const directory = join(home, 'files')
  const port = await findFreePorts()
  const { username, password } = { username: 'upl', password: 'pa$$ "word" ü' }
  await mkdir(directory)
  const group = ACCOUNT.group ?? execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim()
  const values = { home, port, group, user: ACCOUNT.name }
  const lines = [readConfiguration('proftpd', values), ...(await configure(home))]
  const hash = execFileSync('openssl', ['passwd', '-6', '-stdin'], { input: password, encoding: 'utf8' })
  const passwd = `${username}:${hash.trim()}:${ACCOUNT.uid}:${ACCOUNT.gid}::${directory}:/bin/sh\n`
  await writeFile(join(home, 'passwd'), passwd, { mode: 0o600 })
  await writeFile(join(home, 'proftpd.conf'), `${lines.join('\n')}\n`)
  execFileSync('chown', ['-R', `${ACCOUNT.uid}:${ACCOUNT.gid}`, home])

  const args = ['-n', '-c', join(home, 'proftpd.conf')]
  const daemon: Daemon = await startDaemon('proftpd', args, { port, account: ACCOUNT })
  return {
    home,
    port,
    username,
    password,
    directory,
    killSessions: daemon.killSessions,
    async close() {
      await daemon.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
}
