import { expect, it } from 'vitest'
import type { Claim, HistoryEntry } from '../../../src/store/contract.ts'
import { createClaims } from '../../../src/uploader/delivery/claims.ts'

const FILE = { destination: 's3/a', key: 'a.png', sha256: 'aa' }
const PLACES = new Map([['s3/a', 'bucket/']])
const EARLIER: Claim = { ...FILE, time: 1000 }

const entry = (sha256: string) => ({ sha256, key: 'a.png' }) as HistoryEntry

function open(earlier: readonly Claim[], since: readonly HistoryEntry[] = [], fail = false) {
  const saved: (readonly Claim[])[] = []
  const asked: unknown[] = []
  const history = async (filter: unknown) => {
    asked.push(filter)
    return [...since]
  }
  const save = async (claims: readonly Claim[]) => {
    if (fail) throw new Error('the store is down')
    saved.push(claims)
  }
  return { claims: createClaims(earlier, { history }, save, () => 2000), saved, asked }
}

it('a key that no earlier attempt claimed is not ours', async () => {
  const { claims, asked } = open([])
  expect(await claims.has(FILE, PLACES)).toBe(false)
  expect(asked).toEqual([])
})

it.each([
  ['nothing was stored there since', [], true],
  ['the same bytes were stored there since', [entry('aa')], true],
  ['somebody else stored other bytes there since', [entry('aa'), entry('bb')], false],
])('a claim of an earlier attempt when %s', async (_, since, isOurs) => {
  const { claims, asked } = open([EARLIER], since)
  expect(await claims.has(FILE, PLACES)).toBe(isOurs)
  expect(asked).toMatchObject([{ object: { object: 'bucket/a.png' }, since: 1000, isRemoved: false }])
})

it.each([{ sha256: 'bb' }, { key: 'b.png' }, { destination: 's3/b' }])(
  'a claim is for this very file, not with %j',
  async change => {
    expect(await open([EARLIER]).claims.has({ ...FILE, ...change }, PLACES)).toBe(false)
  },
)

it('claims are saved one after the other, each with all before it, and once', async () => {
  const { claims, saved } = open([EARLIER])
  const second = { ...FILE, key: 'b.png' }
  await Promise.all([claims.add(FILE), claims.add(second), claims.add(second)])
  expect(saved).toEqual([[EARLIER, { ...second, time: 2000 }]])
})

it('what this attempt claims is no earlier one', async () => {
  const { claims } = open([])
  await claims.add(FILE)
  expect(await claims.has(FILE, PLACES)).toBe(false)
})

it('an upload goes on when its claim can not be saved', async () => {
  await expect(open([], [], true).claims.add(FILE)).resolves.toBeUndefined()
})
