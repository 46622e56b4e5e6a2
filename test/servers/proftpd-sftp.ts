import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeKey } from './openssh.ts'
import { type ProFtpd, startProFtpd } from './proftpd.ts'

export interface ProFtpdSftp extends ProFtpd {
  /** Private file with a key that is let in beside the password; `passphrase` opens it. */
  readonly keyFile: string
  readonly passphrase: string
  /** As `ssh-keygen -lf` prints it. */
  readonly fingerprint: string
}

/** Starts ProFTPD for SFTP. Needs the Debian packages proftpd-core, proftpd-mod-crypto and openssh-client. */
export async function startProFtpdSftp(config: readonly string[] = []): Promise<ProFtpdSftp> {
  const passphrase = 'open sesame 42'
  let fingerprint = ''
  const server = await startProFtpd(async home => {
    // ProFTPD reads host keys in the old format only.
    fingerprint = makeKey(join(home, 'host'), '', ['-t', 'rsa', '-b', '2048', '-m', 'PEM'])
    makeKey(join(home, 'client'), passphrase)
    const exported = execFileSync('ssh-keygen', ['-e', '-m', 'RFC4716', '-f', join(home, 'client.pub')])
    await writeFile(join(home, 'authkeys'), exported)
    return [
      'AllowOverwrite on',
      'LoadModule mod_sftp.c',
      'SFTPEngine on',
      `SFTPLog ${home}/sftp.log`,
      `SFTPHostKey ${home}/host`,
      `SFTPAuthorizedUserKeys file:${home}/authkeys`,
      'SFTPAuthMethods publickey password',
      ...config,
    ]
  })
  return { ...server, keyFile: join(server.home, 'client'), passphrase, fingerprint }
}
