import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { createLease } from '../../../src/uploader/jobs/lease.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const OWNER = 'here-01234567.1.0123456789ab'

async function open(everyMs: number) {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  let time = 1000
  const lease = createLease(store, OWNER, everyMs, () => new Date(time++))
  onTestFinished(async () => {
    await lease.end()
    await store.close()
  })
  return { store, lease }
}

it('a process that nothing was asked of says nothing', async () => {
  const { store, lease } = await open(10)
  await lease.end()
  expect(await store.owners()).toEqual(new Map())
})

it('the first sign of life is there when it is asked for, and further ones follow', async () => {
  const { store, lease } = await open(10)
  await lease.keepAlive()
  expect(await store.owners()).toEqual(new Map([[OWNER, 1000]]))
  await expect.poll(async () => (await store.owners()).get(OWNER)).toBeGreaterThan(1002)
})

it('a process that leaves is known no longer', async () => {
  const { store, lease } = await open(60_000)
  await lease.keepAlive()
  await lease.end()
  expect(await store.owners()).toEqual(new Map())
})
