import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { runProgram } from '../helpers/run-program.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A program of somebody else, that runs a server of its own by the package and sends it much. */
const HOST = `
import v8 from 'node:v8'
import { syncBuiltinESMExports } from 'node:module'
import { runInNewContext } from 'node:vm'
const flags = []
const set = v8.setFlagsFromString
v8.setFlagsFromString = flag => { flags.push(flag); set(flag) }
syncBuiltinESMExports()
const look = () => ({
  settings: v8.cachedDataVersionTag(),
  gc: runInNewContext('typeof gc'),
  listeners: process.eventNames().map(name => [name, process.listenerCount(name)]),
  environment: { ...process.env },
})
const before = look()
const { createLog, createMask, loadConfig, startServer } = await import('upload-server')
const imported = look()
const config = await loadConfig({ env: { XDG_DATA_HOME: process.argv[1], UPLOAD_SERVER_PORT: '0' }, platform: 'linux', cwd: process.argv[1] })
const mask = createMask([])
const logger = await createLog({ level: 'silent', mask })
const server = await startServer(config, { logger, mask, env: {} })
const sent = await fetch(server.url + '/upload?filename=a', { method: 'PUT', body: Buffer.alloc(40_000_000) })
const used = look()
await server.stop()
process.stdout.write(JSON.stringify({ status: sent.status, before, imported, used, flags }))
process.exit()
`

it('a program that imports the package keeps its own V8 settings, listeners and environment', async () => {
  const args = ['--input-type=module', '-e', HOST, await makeDirectory()]
  const { stdout } = await runProgram(process.execPath, args, { cwd: ROOT })
  const { status, before, imported, used, flags } = JSON.parse(stdout)
  expect(status).toBe(200)
  expect(flags).toEqual([])
  expect(imported).toEqual(before)
  expect(used).toEqual(before)
})
