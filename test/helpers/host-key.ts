import { generateKeyPairSync } from 'node:crypto'

/** The private key of an SSH server. One in 200 that ssh2 makes by itself can't be read by ssh2. */
export function makeHostKey(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
}
