import { fileURLToPath } from 'node:url'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

const ECHO = fileURLToPath(new URL('echo.php', import.meta.url))

export const PHP_NEEDS = [['php', 'php-cli']] as const

/** Two parsers of forms that are not ours. */
export interface EchoServer {
  /** Where everything that it has understood of a request is said. */
  readonly url: string
  stop(): Promise<void>
}

/** PHP's own server with `echo.php` for its pages. */
export async function startPhp(): Promise<EchoServer> {
  const port = await findFreePorts()
  const { stop } = await startDaemon('php', ['-S', `127.0.0.1:${port}`, ECHO], { port })
  return { url: `http://127.0.0.1:${port}/echo`, stop }
}

/** Debian's, which sees Debian's packages; another may come first on the PATH. */
const PYTHON = '/usr/bin/python3'

export const HTTPBIN_NEEDS = [
  [PYTHON, 'python3'],
  ['/usr/lib/python3/dist-packages/httpbin/core.py', 'python3-httpbin'],
] as const

/** httpbin, which parses forms by werkzeug. */
export async function startHttpbin(): Promise<EchoServer> {
  const port = await findFreePorts()
  const args = ['-m', 'httpbin.core', '--host', '127.0.0.1', '--port', String(port)]
  const { stop } = await startDaemon(PYTHON, args, { port })
  return { url: `http://127.0.0.1:${port}/post`, stop }
}
