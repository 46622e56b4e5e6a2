import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Makes a certificate that signs itself, for 127.0.0.1 and `localhost` unless told otherwise. Needs openssl. */
export function makeCertificate(
  folder: string,
  names = 'IP:127.0.0.1,IP:127.0.0.2,DNS:localhost',
): { certFile: string; keyFile: string } {
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=test', '-addext', `subjectAltName=${names}`, '-keyout', keyFile, '-out', certFile],
    ],
    { stdio: 'ignore' },
  )
  return { certFile, keyFile }
}
