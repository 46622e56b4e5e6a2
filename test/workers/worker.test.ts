import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts'
import { connect } from '../../src/workers/calls.ts'
import type { PrimaryMethods } from '../../src/workers/desk.ts'
import type { WorkerMethods } from '../../src/workers/worker.ts'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'

const ENTRY = fileURLToPath(new URL('../../dist/workers/worker.js', import.meta.url))

async function configure(directory: string, key: string): Promise<LoadedConfig> {
  const flags = { server: { port: 0, key }, log: { level: 'error' } }
  const env = { XDG_DATA_HOME: directory, UPLOAD_SERVER_CONFIG: '' }
  const config = await loadConfig({ env, platform: 'linux', cwd: directory, flags })
  return {
    ...config,
    raw: { ...config.raw, value: { ...config.raw.value, auth: { loopbackExempt: false } } },
  }
}

async function startWorker(directory: string) {
  const child = fork(ENTRY, [], { env: { PATH: process.env['PATH'] }, stdio: 'ignore' })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let isReady = () => {}
  const ready = new Promise<void>(resolve => {
    isReady = resolve
  })
  const primary: Partial<PrimaryMethods> = { ready: isReady, take: async () => 'free', release() {} }
  const { call } = connect<WorkerMethods, Partial<PrimaryMethods>>(child as never, primary)
  await ready
  const { raw, settings, dataDirectory, ownPaths } = await configure(directory, 'key-0')
  const fixed = { settings, dataDirectory, ownPaths }
  const { url } = await call('start', { index: 1, count: 1, raw, fixed, port: undefined })
  const prepare = async (reload: number) =>
    call('prepare', reload, (await configure(directory, `key-${reload}`)).raw)
  /** Without a body, which is a question for the clipboard: 403 with the right key. */
  const statusOf = async (reload: number) =>
    (await ask(url, 'POST', '/upload', { headers: { 'X-Upload-Key': `key-${reload}` } })).status
  return { call, prepare, statusOf }
}

it('a second reload waits for the first one, and each is taken or discarded by itself', async () => {
  const { call, prepare, statusOf } = await startWorker(await makeDirectory())
  await prepare(1)
  const second = prepare(2)
  await call('discard', 7)
  expect([await statusOf(0), await statusOf(1), await statusOf(2)]).toEqual([403, 401, 401])
  await call('commit', 1)
  await second
  expect([await statusOf(0), await statusOf(1), await statusOf(2)]).toEqual([401, 403, 401])
  await call('discard', 2)
  await expect(call('commit', 2)).rejects.toThrow('Nothing is prepared that could be taken.')
  expect([await statusOf(1), await statusOf(2)]).toEqual([403, 401])
  await prepare(3)
  await call('commit', 3)
  expect([await statusOf(1), await statusOf(3)]).toEqual([401, 403])
})
