import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import { createBatcher } from '../../src/store/batch.ts'

/** Counts the commits of works that use no database. */
function makeCommit() {
  let commits = 0
  const commit = async (works: readonly (() => void)[]) => {
    commits++
    for (const work of works) work()
  }
  return { commit, commits: () => commits }
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
  const { commit, commits } = makeCommit()
  const batch = createBatcher(commit)
  const done: number[] = []
  const works = [0, 1, 2, 3].map(n => () => batch(() => void done.push(n)))
  expect(statuses(await inOneTurn(works))).toEqual(Array(4).fill('fulfilled'))
  expect(done).toEqual([0, 1, 2, 3])
  expect(commits()).toBe(1)
})

it('waits for what comes in further turns, as long as they are busy', async () => {
  // On a machine that is busy with something else a single turn may take longer than all writes may wait.
  const countCommits = async () => {
    const { commit, commits } = makeCommit()
    const batch = createBatcher(commit)
    const writes: Promise<void>[] = []
    for (let n = 0; n < 6; n++) {
      writes.push(batch(() => {}))
      await turn()
      for (const end = performance.now() + 0.2; performance.now() < end; );
    }
    await Promise.all(writes)
    return commits()
  }
  await expect.poll(countCommits, { timeout: 10_000 }).toBeLessThan(6)
})

it('commits at once what is said to be alone', async () => {
  const { commit, commits } = makeCommit()
  const batch = createBatcher(commit)
  const written = batch(() => {}, true)
  expect(commits()).toBe(1)
  await written
})

it('does them one by one when one of them fails, and tells that one alone', async () => {
  const { commit } = makeCommit()
  const batch = createBatcher(commit)
  const works = [0, 1, 2].map(
    n => () =>
      batch(() => {
        if (n === 1) throw new Error('a duplicate')
      }),
  )
  expect(statuses(await inOneTurn(works))).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('does not wait for a broken store once for each of them', async () => {
  const { commit, commits } = makeCommit()
  const batch = createBatcher(async (works: readonly (() => void)[]) => {
    await commit(works)
    throw new UploadError('store_unavailable', 'down')
  })
  const works = [0, 1, 2].map(() => () => batch(() => {}))
  expect(statuses(await inOneTurn(works))).toEqual(Array(3).fill('rejected'))
  expect(commits()).toBe(1)
})
