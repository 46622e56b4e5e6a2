import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../helpers/free-port.ts'
import { hasProgram } from '../helpers/needs.ts'
import { makeCertificate } from './certificate.ts'
import { readConfiguration } from './configuration.ts'
import { startDaemon } from './daemon.ts'
import { type FtpServer, type FtpTls, PASSIVE_HOSTS, PASSIVE_PORTS } from './ftp-server.ts'

/**
 * Debian's FTP servers exclude each other. Beside ProFTPD this one is unpacked and not installed:
 * `mkdir -p /opt/vsftpd && cd /opt/vsftpd && apt-get download vsftpd && dpkg -x vsftpd_*.deb .`
 */
const UNPACKED = '/opt/vsftpd/usr/sbin/vsftpd'

/** An account every Debian has, with a home folder that exists: vsftpd looks at it. */
const DAEMON = { name: 'daemon', uid: 1, gid: 1 }

const VSFTPD = hasProgram('vsftpd') ? 'vsftpd' : UNPACKED

/** For `needsAll`. */
export const VSFTPD_NEEDS = [
  [VSFTPD, 'vsftpd'],
  ['openssl', 'openssl'],
] as const

/**
 * Starts vsftpd on 127.0.0.1. The login is its anonymous one with a password from a list, so that no account of the
 * machine is needed. Needs the Debian packages vsftpd and openssl.
 */
export async function startVsftpd(
  tls: FtpTls = 'explicit',
  config: readonly string[] = [],
): Promise<FtpServer> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-vsftpd-'))
  const root = join(home, 'root')
  const directory = join(root, 'files')
  const isRoot = userInfo().uid === 0
  const port = await findFreePorts()
  const passivePort = await findFreePorts(PASSIVE_PORTS, PASSIVE_HOSTS)
  const { certFile, keyFile } = makeCertificate(home)
  const password = 'vs-ftp-secret-7'
  await mkdir(join(home, 'empty'))
  // An anonymous login has to start in a folder it can't write to.
  await mkdir(directory, { recursive: true })
  if (isRoot) {
    await chmod(home, 0o755)
    await chown(directory, DAEMON.uid, DAEMON.gid)
  }
  const values = {
    ...{ home, root, port, passivePort, certFile, keyFile },
    lastPassivePort: passivePort + PASSIVE_PORTS - 1,
    account: isRoot ? DAEMON.name : userInfo().username,
    isUser: isRoot ? 'NO' : 'YES',
    isImplicit: tls === 'implicit' ? 'YES' : 'NO',
    isForced: tls === 'optional' ? 'NO' : 'YES',
  }
  const lines = [readConfiguration('vsftpd', values), ...config]
  await writeFile(join(home, 'passwords'), `${password}\n`)
  await writeFile(join(home, 'vsftpd.conf'), `${lines.join('\n')}\n`, { mode: 0o600 })
  const daemon = await startDaemon(VSFTPD, [join(home, 'vsftpd.conf')], { port })
  return {
    port,
    username: 'ftp',
    password,
    directory,
    folder: 'files',
    certFile,
    passivePort,
    killSessions: daemon.killSessions,
    async close() {
      await daemon.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
}
