import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished, type TestContext } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { missing } from '../helpers/needs.ts'
import { startDaemon } from './daemon.ts'

const PICGO = '/opt/picgo/node_modules/picgo'

/** @param config its file */
export async function startPicGo(context: TestContext, config: object = {}): Promise<string> {
  if (!existsSync(PICGO)) missing(context, 'needs PicGo: npm install --prefix /opt/picgo picgo@3.1.0')
  const folder = await makeDirectory()
  await writeFile(join(folder, 'config.json'), JSON.stringify(config))
  const port = await findFreePorts()
  const script = fileURLToPath(new URL('picgo.cjs', import.meta.url))
  const args = [script, PICGO, folder, String(port)]
  const server = await startDaemon(process.execPath, args, { port, env: { HOME: folder } })
  onTestFinished(server.stop)
  return `http://127.0.0.1:${port}`
}
