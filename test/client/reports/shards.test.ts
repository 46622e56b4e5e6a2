import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Review, ReviewRow } from '../../../src/client/reports/review.ts'
import { mergeShards, publishShards } from '../../../src/client/reports/shards.ts'
import type { Uploads } from '../../../src/client/uploads.ts'

const { signal } = new AbortController()
const image = (name: string) => ({ name, url: `https://img.example.com/${name}` })
const row = (name: string, state: ReviewRow['state'], from?: string): ReviewRow => ({
  ...{ name, state, ...(from !== undefined && { from }) },
  ...(state === 'gone' ? { before: image(name) } : { after: image(name) }),
})
const show = ({ rows }: Review) =>
  rows.map(({ name, state, from }) => [from, name, state].filter(Boolean).join(' '))

it('an earlier image is gone if no shard has it, and not before all of them are there', () => {
  const [baseline, run] = [{ name: 'visual' }, { commit: 'abc1234' }]
  const gone = ['b.png', 'c.png'].map(name => row(name, 'gone'))
  const a = {
    rows: [row('a.png', 'changed'), row('moved.png', 'renamed', 'old.png'), ...gone],
    baseline,
    run,
  }
  const others = ['old.png', 'c.png'].map(name => row(name, 'gone'))
  const b = { rows: [row('b.png', 'same'), row('copy.png', 'renamed', 'a.png'), ...others], baseline }
  expect(mergeShards([a], 2, a)).toMatchObject({ shards: { found: 1, of: 2 }, baseline: { name: 'visual' } })
  expect(show(mergeShards([a], 2, a))).toEqual(['a.png changed', 'old.png moved.png renamed'])
  expect(show(mergeShards([a, b], 2, a))).toEqual([
    'a.png changed',
    'copy.png new',
    'c.png gone',
    'old.png moved.png renamed',
    'b.png same',
  ])
})

/** A destination that tells the latest list of each name, and takes any time for each answer. */
function createStore(pause: () => Promise<void>) {
  const stored = new Map<string, string>()
  const versions = new Map<string, Uint8Array>()
  const uploads: Pick<Uploads, 'upload' | 'find'> = {
    async *upload([entry]) {
      await pause()
      const url = `https://img.example.com/${versions.size}?signature=${Math.random()}`
      versions.set(new URL(url).pathname, entry?.bytes ?? new Uint8Array())
      stored.set(entry?.name ?? '', url)
      await pause()
      yield { index: 0, name: entry?.name ?? '', url }
    },
    async find(files) {
      await pause()
      const links = files.map(({ name }) => stored.get(name))
      await pause()
      return links
    },
  }
  const fetched: string[] = []
  const fetch = async (link: string) => {
    await pause()
    fetched.push(new URL(link).pathname)
    return versions.get(new URL(link).pathname)
  }
  return { uploads: uploads as Uploads, fetch, fetched, signal }
}

it('attack: shards that run at the same time lose each other, in 300 orders', async () => {
  for (let seed = 1; seed <= 300; seed++) {
    let state = seed
    const random = (most: number) => {
      state = (state * 48_271) % 2_147_483_647
      return state % most
    }
    const pause = async () => {
      for (let turns = random(6); turns > 0; turns--) await nextTurn()
    }
    const store = createStore(pause)
    let comment: Review | undefined
    const run = async (index: number, name: string) => {
      await pause()
      await publishShards({ rows: [row(name, 'new')] }, { index, of: 4 }, ['run'], store, async merged => {
        await pause()
        comment = merged
        await pause()
      })
    }
    await Promise.all([1, 2, 3, 4].map(index => run(index, `${index}.png`)))
    expect(comment && show(comment), `seed ${seed}`).toEqual([1, 2, 3, 4].map(n => `${n}.png new`))
    await Promise.all([run(2, 'again.png'), run(4, '4.png')])
    expect(comment?.shards).toEqual({ found: 4, of: 4 })
    expect(comment && show(comment)).toContain('again.png new')
    expect(comment && show(comment)).not.toContain('2.png new')
  }
})

it('a shard reads each list once, however often others come in', async () => {
  const store = createStore(async () => {})
  const publishOne = (index: number, publish = async () => {}) =>
    publishShards({ rows: [] }, { index, of: 4 }, ['run'], store, publish)
  await publishOne(2)
  store.fetched.length = 0
  await publishOne(1, async () => {
    if (store.fetched.length === 1) await publishOne(3)
  })
  // The third shard has read the first and the second, and the first has read the second and the third.
  expect(store.fetched.sort()).toEqual(['/0', '/0', '/1', '/2'])
})

it('a client whose lists are not found, such as an anonymous one, publishes nothing', async () => {
  const { uploads, fetch } = createStore(async () => {})
  const blind = { ...uploads, find: async (files: readonly object[]) => files.map(() => undefined) }
  const publish = async () => expect.unreachable()
  const access = { uploads: blind, fetch, signal }
  const shown = publishShards({ rows: [] }, { index: 1, of: 2 }, ['run'], access, publish)
  await expect(shown).rejects.toThrow('the server finds no lists of this client')
})
