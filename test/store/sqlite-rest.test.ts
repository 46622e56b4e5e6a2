import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Libsql from 'libsql'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../src/store/contract.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { mayHoldJobs } from '../../src/store/sqlite-rest.ts'
import { makeDirectory } from '../helpers/directory.ts'

let directory: string
let path: string
let copies = 0
beforeEach(async () => {
  directory = await makeDirectory()
  path = join(directory, 'store.db')
})

function open(at = path): Store {
  const store = createSqliteStore(at)
  onTestFinished(() => store.close())
  return store
}

/** A copy of the store as it lies on the disk: what a process would find that starts now. */
async function copy(): Promise<string> {
  const to = join(directory, `copy-${copies++}.db`)
  await copyFile(path, to)
  await copyFile(`${path}-wal`, `${to}-wal`).catch(() => {})
  return to
}

async function begin(store: Store, id: string, owner: string): Promise<void> {
  await store.beat(owner, 1)
  const about = { requestId: 'r1', caller: 'loopback', destination: 'local/Default', origins: ['a.png'] }
  await store.begin({ id, createdAt: 1, owner, ...about })
}

const deliver = (store: Store, id: string, owner: string, state: 'finished' | 'delivered') =>
  store.deliver(id, { state, owner, files: [], steps: ['history'], history: [], now: 1 })

/** A process that does one upload from its beginning to its end. */
async function uploadOne(owner: string): Promise<void> {
  const store = open()
  await begin(store, `job of ${owner}`, owner)
  await deliver(store, `job of ${owner}`, owner, 'finished')
  await store.leave(owner)
  await store.close()
}

describe('no jobs wait', () => {
  it('where no store is, nor its folder', () => {
    expect(mayHoldJobs(path)).toBe(false)
    expect(mayHoldJobs(join(directory, 'a', 'b', 'store.db'))).toBe(false)
  })

  it('in a store that all processes left with their jobs over', async () => {
    await uploadOne('a')
    expect(mayHoldJobs(await copy())).toBe(false)
  })

  it('when somebody has only looked at it since', async () => {
    await uploadOne('a')
    const store = open()
    expect(await store.job('job of a')).toBeDefined()
    await store.close()
    expect(mayHoldJobs(await copy())).toBe(false)
  })
})

describe('jobs may wait', () => {
  it('in a store that was left in order by a version with another schema', async () => {
    await uploadOne('a')
    const other = new Libsql(path)
    other.pragma('user_version = 1')
    other.pragma('wal_checkpoint(TRUNCATE)')
    other.close()
    expect(mayHoldJobs(await copy())).toBe(true)
  })

  it('as soon as a process says that it lives', async () => {
    await uploadOne('a')
    const store = open()
    await store.beat('b', 2)
    expect(mayHoldJobs(await copy())).toBe(true)
    // As when somebody else takes the log into the file.
    await store.close()
    expect(mayHoldJobs(await copy())).toBe(true)
  })

  it('when one of two processes has left', async () => {
    const [one, other] = [open(), open()]
    await one.beat('one', 1)
    await other.beat('other', 1)
    await one.leave('one')
    await one.close()
    expect(mayHoldJobs(await copy())).toBe(true)
    await other.leave('other')
    await other.close()
    expect(mayHoldJobs(await copy())).toBe(false)
  })

  it.each(['uploading', 'delivered'] as const)('when a process left one that is %s', async state => {
    const store = open()
    await begin(store, 'job', 'a')
    if (state === 'delivered') await deliver(store, 'job', 'a', state)
    await store.leave('a')
    await store.close()
    const found = await copy()
    expect(mayHoldJobs(found)).toBe(true)
    expect(await open(found).job('job')).toMatchObject({ state })
  })

  it('in a store that this process has open: it is not read, since closing it would drop the locks on it', async () => {
    await uploadOne('a')
    const found = await copy()
    expect(mayHoldJobs(found)).toBe(false)
    await open(found).job('job')
    expect(mayHoldJobs(found)).toBe(true)
  })

  it('where something else lies: whoever opens it is told what is wrong', async () => {
    await writeFile(path, 'a picture, perhaps '.repeat(1000))
    expect(mayHoldJobs(path)).toBe(true)
    expect(mayHoldJobs(join(path, 'store.db'))).toBe(true)
    await mkdir(join(directory, 'folder', 'inside'), { recursive: true })
    expect(mayHoldJobs(join(directory, 'folder'))).toBe(true)
  })
})
