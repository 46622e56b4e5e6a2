import { expect, it } from 'vitest'
import { UploadError } from '../../../src/errors.ts'
import { createBatcher } from '../../../src/uploader/store/batch.ts'
import type { Database, Use } from '../../../src/uploader/store/tables.ts'

/** Counts the commits of works that use no database. */
function makeWrite() {
  let commits = 0
  const write: Use = async work => {
    commits++
    return work(undefined as unknown as Database)
  }
  return { write, commits: () => commits }
}

/** Each from a callback of its own, as requests come. */
function inOneTurn<T>(works: readonly (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
  const started = works.map(
    work => new Promise<T>((resolve, reject) => setImmediate(() => void work().then(resolve, reject))),
  )
  return Promise.allSettled(started)
}

const statuses = (results: readonly PromiseSettledResult<void>[]) => results.map(result => result.status)

it('commits together what comes in one turn of the event loop', async () => {
  const { write, commits } = makeWrite()
  const batch = createBatcher(write)
  const done: number[] = []
  const works = [0, 1, 2, 3].map(n => () => batch(async () => void done.push(n)))
  expect(statuses(await inOneTurn(works))).toEqual(Array(4).fill('fulfilled'))
  expect(done).toEqual([0, 1, 2, 3])
  expect(commits()).toBe(1)
})

it('does them one by one when one of them fails, and tells that one alone', async () => {
  const { write } = makeWrite()
  const batch = createBatcher(write)
  const works = [0, 1, 2].map(
    n => () =>
      batch(async () => {
        if (n === 1) throw new Error('a duplicate')
      }),
  )
  expect(statuses(await inOneTurn(works))).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('does not wait for a broken store once for each of them', async () => {
  const { write, commits } = makeWrite()
  const batch = createBatcher(async work => {
    await write(work)
    throw new UploadError('store_unavailable', 'down')
  })
  const works = [0, 1, 2].map(() => () => batch(async () => {}))
  expect(statuses(await inOneTurn(works))).toEqual(Array(3).fill('rejected'))
  expect(commits()).toBe(1)
})
