import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:net'
import ssh2 from 'ssh2'
import { onTestFinished } from 'vitest'
import { listen } from '../helpers/listen.ts'

/** The private key of an SSH server. One in 200 that ssh2 makes by itself can't be read by ssh2. */
export function makeHostKey(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
}

/** A server of the ssh2 package, which does what it is told to, until the end of the test. @returns its port */
export async function startSsh2(
  serve: (client: ssh2.Connection) => unknown,
  hostKeys: readonly (string | Buffer)[] = [makeHostKey()],
): Promise<number> {
  const server = new ssh2.Server({ hostKeys: [...hostKeys] }, client => serve(client.on('error', () => {})))
  const { port, close } = await listen(createServer(socket => server.injectSocket(socket)))
  onTestFinished(close)
  return port
}
