import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

const APP = fileURLToPath(new URL('httpbin/app.py', import.meta.url))
/** Debian's, which sees Debian's packages; another may come first on the PATH. */
const PYTHON = '/usr/bin/python3'

/** The second program belongs to Flask, which the package of httpbin brings along. */
export const HTTPBIN_NEEDS = [
  [PYTHON, 'python3'],
  ['/usr/lib/python3/dist-packages/httpbin/core.py', 'python3-httpbin'],
] as const

export interface Httpbin {
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

/** httpbin, and beside it `/store`: a host that answers in XML, with a parser of forms that is not ours. */
export async function startHttpbin(): Promise<Httpbin> {
  const folder = await mkdtemp(join(tmpdir(), 'upload-server-httpbin-'))
  const port = await findFreePorts()
  const daemon = await startDaemon(PYTHON, [APP, folder, String(port)], { port })
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      await daemon.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
