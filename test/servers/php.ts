import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

const ROUTER = fileURLToPath(new URL('php/router.php', import.meta.url))

export const PHP_NEEDS = [['php', 'php-cli']] as const

/** PHP's own server with `php/router.php` for its pages: a parser of forms that is not ours. */
export interface Php {
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

export async function startPhp(): Promise<Php> {
  const root = await mkdtemp(join(tmpdir(), 'upload-server-php-'))
  const port = await findFreePorts()
  const limits = ['upload_max_filesize=200M', 'post_max_size=210M', 'memory_limit=512M', 'display_errors=0']
  const args = [...limits.flatMap(one => ['-d', one]), '-d', `upload_tmp_dir=${root}`]
  const daemon = await startDaemon('php', [...args, '-S', `127.0.0.1:${port}`, '-t', root, ROUTER], { port })
  const url = `http://127.0.0.1:${port}`
  return {
    port,
    url,
    async close() {
      await daemon.stop()
      await rm(root, { recursive: true, force: true })
    },
  }
}
