import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { mountSmall } from '../helpers/mount-small.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const uniqueNames = { keyTemplate: '{uuid}{extname}' }

function send(app: TestApp, key: string, files: Record<string, string>, query = '') {
  return post(`${app.url}/upload${query}`, { body: formOf(files), headers: { 'Idempotency-Key': key } })
}

describe('the same keyed request was called another one', () => {
  const large = { 'a.bin': 'x'.repeat(1_500_000), 'b.bin': 'y'.repeat(1_500_000) }

  /** What large files are spooled in is on a disk of its own. */
  async function startOnSmallDisk(context: TestContext, isFull: boolean) {
    const directory = await makeDirectory()
    await mountSmall(context, join(directory, 'small'), '8m')
    const config = { ...uniqueNames, providers: { local: { d: { directory: 'small', serve: true } } } }
    const ballast = join(directory, 'small', 'ballast')
    const fill = () => writeFile(ballast, Buffer.alloc(8 * 1024 * 1024)).catch(() => {})
    if (isFull) await writeFile(ballast, Buffer.alloc(6 * 1024 * 1024))
    return { app: await startApp({ config, directory }), fill, empty: () => rm(ballast) }
  }

  it('while the disk was full, although it had got its links', async context => {
    const { app, fill } = await startOnSmallDisk(context, false)
    const first = await send(app, 'k1', large)
    expect(first).toMatchObject({ status: 200 })
    await fill()
    expect(await send(app, 'k1', large)).toMatchObject({ status: 200, result: first.result })
  })

  it('once there was space again, when one of two files had met a full disk', async context => {
    const { app, empty } = await startOnSmallDisk(context, true)
    const first = await send(app, 'k1', large)
    expect(first).toMatchObject({ status: 507, errors: [{ code: 'insufficient_storage' }] })
    expect(first.result).toHaveLength(1)
    await empty()
    expect(await send(app, 'k1', large)).toMatchObject({ status: 507, result: first.result })
    expect(await send(app, 'k1', { ...large, 'b.bin': 'other' })).toMatchObject({ status: 422 })
  })
})
