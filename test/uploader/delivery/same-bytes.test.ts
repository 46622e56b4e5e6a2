import { describe, expect, it } from 'vitest'
import type { Payload } from '../../../src/payload/index.ts'
import type { HistoryEntry, HistoryFilter } from '../../../src/store/contract.ts'
import type { Destination } from '../../../src/uploader/delivery/destinations.ts'
import type { Lock } from '../../../src/uploader/delivery/locker.ts'
import { findSame } from '../../../src/uploader/delivery/same-bytes.ts'

const { signal } = new AbortController()
const payload = { sha256: 'aa' } as Payload
const entry = (sha256 = 'aa', key = 'x/a.png') => ({ sha256, key, time: 1000 }) as HistoryEntry

interface Around {
  readonly dedupe?: boolean
  readonly onConflict?: Destination['onConflict']
  /** Files of these bytes, the latest first. */
  readonly stored?: readonly HistoryEntry[]
  readonly since?: readonly HistoryEntry[]
  readonly isTaken?: boolean
  readonly isThere?: boolean | 'unknown'
}

async function find(wanted: string, around: Around) {
  const { dedupe = false, onConflict = 'rename', isThere = true } = around
  const { stored = [entry()], since = [entry()] } = around
  const asked: unknown[] = []
  const exists = async (key: string) => {
    asked.push(`exists ${key}`)
    return isThere === true
  }
  const history = {
    history: async (filter: HistoryFilter) => {
      asked.push(filter)
      return [...(filter.object === undefined ? stored : since)]
    },
  }
  const take = async (key: string) => {
    asked.push(`take ${key}`)
    const release = () => void asked.push(`release ${key}`)
    return around.isTaken ? undefined : ({ release } as Lock)
  }
  const target = isThere === 'unknown' ? {} : { exists }
  const destination = {
    type: 's3',
    name: 'a',
    location: 's3://a/',
    dedupe,
    onConflict,
    target,
  } as unknown as Destination
  const found = await findSame(payload, wanted, destination, new Map(), history, take, signal)
  return { found: found?.entry, asked }
}

describe('with dedupe', () => {
  it('a file of the same bytes is taken, whatever it is called, and held before it is looked for', async () => {
    const { found, asked } = await find('other.gif', { dedupe: true, since: [entry('bb')] })
    expect(found).toEqual(entry())
    expect(asked).toEqual([
      { among: ['s3/a'], sha256: 'aa', isRemoved: false, limit: 1 },
      'take x/a.png',
      'exists x/a.png',
    ])
  })

  it.each<[string, Around]>([
    ['the history knows none', { stored: [] }],
    ['it is no longer there', { isThere: false }],
    ['nobody can tell whether it is there', { isThere: 'unknown' }],
    ['its key is taken for other bytes now', { isTaken: true }],
  ])('none is taken when %s', async (_, around) => {
    expect((await find('x/a.png', { dedupe: true, ...around })).found).toBeUndefined()
  })
})

describe('with rename', () => {
  it.each([
    ['x/a.png', 'x/a.png'],
    ['x/a-2.png', 'x/a.png'],
    ['x/a-17', 'x/a'],
  ])('%s is taken for one asked for as %s', async (key, wanted) => {
    expect((await find(wanted, { stored: [entry('aa', key)] })).found).toEqual(entry('aa', key))
  })

  it.each([
    ['x/b.png', 'x/a.png'],
    ['y/a.png', 'x/a.png'],
    ['x/a-2.gif', 'x/a.png'],
    ['x-2/a.png', 'x/a.png'],
    ['x/a-b.png', 'x/a.png'],
  ])('%s is not taken for one asked for as %s', async (key, wanted) => {
    expect((await find(wanted, { stored: [entry('aa', key)] })).found).toBeUndefined()
  })

  it('the one asked for under this key is taken, whatever came later under others', async () => {
    const stored = [entry('aa', 'x/b.png'), entry('aa', 'y/a.png'), entry('aa', 'x/a-2.png'), entry()]
    expect((await find('x/a.png', { stored })).found?.key).toBe('x/a-2.png')
    expect((await find('x/b.png', { stored })).found?.key).toBe('x/b.png')
  })

  it.each<[string, Around]>([
    ['something else was stored under its key since then', { since: [entry('bb'), entry()] }],
    ['more was stored there than is looked at', { since: Array(1000).fill(entry()) }],
  ])('none is taken when %s', async (_, around) => {
    const { found, asked } = await find('x/a.png', around)
    expect(found).toBeUndefined()
    expect(asked.at(-1)).toMatchObject({ object: { object: 's3/a/x/a.png' }, since: 1000, isRemoved: false })
  })
})

it.each(['replace', 'error'] as const)('with %s nobody is asked', async onConflict => {
  expect(await find('x/a.png', { onConflict })).toEqual({ found: undefined, asked: [] })
})
