import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

const SET_CLOCK = fileURLToPath(new URL('../fixtures/set-clock.mjs', import.meta.url))
const DAY_MS = 24 * 60 * 60 * 1000

/** As soon as a busy machine can store a file before. */
const DUE_MS = 2000

it('a clock that jumps ahead and back takes no file, and one that stays there does', async () => {
  const directory = await makeDirectory()
  const config = {
    ...{ server: { port: 0 }, cleanup: { interval: '1000ms' }, keyTemplate: '{filename}{extname}' },
    providers: { local: { Default: { directory: 'Default', serve: true, expiry: { default: 'never' } } } },
  }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  const clock = join(directory, 'clock')
  const env = { NODE_OPTIONS: `--import ${SET_CLOCK}`, CLOCK: clock }
  const server = await spawnServer([], { directory, env })
  const url = await server.url
  const isThere = (name: string) => existsSync(join(directory, 'Default', name))
  const put = (name: string, afterMs: number) => {
    const at = new Date(Date.now() + afterMs).toISOString()
    return post(`${url}/upload?expires=${at}`, { body: formOf({ [name]: name }) })
  }
  /** Done once the server has looked what is due. */
  const look = async (name: string, first: () => unknown = () => {}) => {
    expect(await put(name, DUE_MS)).toMatchObject({ status: 200 })
    await sleep(DUE_MS)
    await first()
    await expect.poll(() => isThere(name), { timeout: 10_000, interval: 20 }).toBe(false)
  }
  expect(await put('kept.txt', DAY_MS / 2)).toMatchObject({ status: 200 })
  await look('first.txt', () => writeFile(clock, String(DAY_MS)))
  await writeFile(clock, '0')
  await sleep(100) // until that is read
  await look('second.txt')
  expect(isThere('kept.txt')).toBe(true)
  await writeFile(clock, String(DAY_MS))
  await expect.poll(() => isThere('kept.txt'), { timeout: 10_000 }).toBe(false)
})
