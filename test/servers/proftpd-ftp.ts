import { findFreePorts } from '../helpers/free-port.ts'
import { makeCertificate } from './certificate.ts'
import { type FtpServer, type FtpTls, PASSIVE_HOSTS, PASSIVE_PORTS } from './ftp-server.ts'
import { startProFtpd } from './proftpd.ts'

/**
 * Starts ProFTPD for FTP. Needs the Debian packages proftpd-core, proftpd-mod-crypto and openssl.
 *
 * @param config further lines of its configuration; the last of a kind counts
 */
export async function startProFtpdFtp(
  tls: FtpTls = 'explicit',
  config: readonly string[] = [],
): Promise<FtpServer> {
  const passivePort = await findFreePorts(PASSIVE_PORTS, PASSIVE_HOSTS)
  let certFile = ''
  const server = await startProFtpd(home => {
    const made = makeCertificate(home)
    certFile = made.certFile
    return [
      ...(config.some(line => line.startsWith('AllowOverwrite')) ? [] : ['AllowOverwrite on']),
      'LoadModule mod_tls.c',
      'TLSEngine on',
      `TLSLog ${home}/tls.log`,
      `TLSRequired ${tls === 'optional' ? 'off' : 'on'}`,
      ...(tls === 'implicit' ? ['TLSOptions UseImplicitSSL'] : []),
      `TLSECCertificateFile ${made.certFile}`,
      `TLSECCertificateKeyFile ${made.keyFile}`,
      'TLSProtocol TLSv1.2 TLSv1.3',
      `PassivePorts ${passivePort} ${passivePort + PASSIVE_PORTS - 1}`,
      ...config,
    ]
  })
  return { ...server, folder: '', certFile, passivePort }
}
