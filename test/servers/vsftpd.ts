import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../helpers/free-port.ts'
import { hasProgram } from '../helpers/needs.ts'
import { makeCertificate } from './certificate.ts'
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
  const isForced = tls === 'optional' ? 'NO' : 'YES'
  const lines = [
    'listen=YES',
    'listen_address=127.0.0.1',
    `listen_port=${port}`,
    'background=NO',
    'seccomp_sandbox=NO',
    'isolate=NO',
    'isolate_network=NO',
    `run_as_launching_user=${isRoot ? 'NO' : 'YES'}`,
    `secure_chroot_dir=${home}/empty`,
    'pasv_address=127.0.0.1',
    `pasv_min_port=${passivePort}`,
    `pasv_max_port=${passivePort + PASSIVE_PORTS - 1}`,
    'anonymous_enable=YES',
    `ftp_username=${isRoot ? DAEMON.name : userInfo().username}`,
    `anon_root=${root}`,
    'anon_umask=022',
    'anon_upload_enable=YES',
    'anon_mkdir_write_enable=YES',
    'anon_other_write_enable=YES',
    'anon_world_readable_only=NO',
    'write_enable=YES',
    'secure_email_list_enable=YES',
    `email_password_file=${home}/passwords`,
    'ssl_enable=YES',
    `implicit_ssl=${tls === 'implicit' ? 'YES' : 'NO'}`,
    'allow_anon_ssl=YES',
    `force_anon_logins_ssl=${isForced}`,
    `force_anon_data_ssl=${isForced}`,
    'require_ssl_reuse=YES',
    'ssl_ciphers=HIGH',
    `rsa_cert_file=${certFile}`,
    `rsa_private_key_file=${keyFile}`,
    ...config,
  ]
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
