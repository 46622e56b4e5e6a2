import { execFileSync } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../helpers/free-port.ts'
import { readConfiguration } from './configuration.ts'
import { type Daemon, startDaemon } from './daemon.ts'

/** sshd refuses to be started by a name without a path. */
const SSHD = '/usr/sbin/sshd'

/** For `needsAll`. */
export const OPENSSH_NEEDS = [
  [SSHD, 'openssh-server'],
  ['ssh-keygen', 'openssh-client'],
] as const

export interface OpenSsh {
  readonly port: number
  /** The account that runs the tests: sshd lets nobody else in without changes to the machine. */
  readonly username: string
  /** Where a login starts. */
  readonly directory: string
  /** Private file with the key that is let in. */
  readonly keyFile: string
  /** As `ssh-keygen -lf` prints it. */
  readonly fingerprint: string
  /** Its log. */
  output(): string
  /** Ends every connection as a crash would. */
  killSessions(): void
  /** Ends every connection and starts anew on the same port. */
  restart(options?: { withNewHostKey?: boolean }): Promise<void>
  close(): Promise<void>
}

/**
 * Starts OpenSSH's server on 127.0.0.1, for SFTP with a key only. Needs the Debian package openssh-server.
 *
 * @param sftpArguments of internal-sftp, such as `-P fsync` for a server that lacks a request
 */
export async function startOpenSsh(sftpArguments = ''): Promise<OpenSsh> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-sshd-'))
  const directory = join(home, 'files')
  const keyFile = join(home, 'client')
  const hostKey = join(home, 'host')
  const port = await findFreePorts()
  const { username, uid } = userInfo()
  if (uid === 0) await mkdir('/run/sshd', { recursive: true })
  await mkdir(directory)
  makeKey(keyFile)
  await copyFile(`${keyFile}.pub`, join(home, 'authorized_keys'))
  const text = readConfiguration('sshd', { home, port, hostKey, directory, sftpArguments })
  await writeFile(join(home, 'sshd_config'), text)

  let daemon: Daemon | undefined
  const start = async () => {
    daemon = await startDaemon(SSHD, ['-D', '-e', '-f', join(home, 'sshd_config')], { port })
  }
  const server: { -readonly [K in keyof OpenSsh]: OpenSsh[K] } = {
    port,
    username,
    directory,
    keyFile,
    fingerprint: makeKey(hostKey),
    output: () => daemon?.output() ?? '',
    killSessions: () => daemon?.killSessions(),
    async restart({ withNewHostKey = false } = {}) {
      await daemon?.stop()
      if (withNewHostKey) {
        await rm(hostKey)
        await rm(`${hostKey}.pub`)
        server.fingerprint = makeKey(hostKey)
      }
      await start()
    },
    async close() {
      await daemon?.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
  await start()
  return server
}

/** @returns its fingerprint */
export function makeKey(path: string, passphrase = '', kind: readonly string[] = ['-t', 'ed25519']): string {
  execFileSync('ssh-keygen', ['-q', ...kind, '-N', passphrase, '-C', 'test', '-f', path])
  const printed = execFileSync('ssh-keygen', ['-l', '-f', `${path}.pub`], { encoding: 'utf8' })
  return printed.split(' ')[1] ?? ''
}
