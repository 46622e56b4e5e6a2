import { expect, it } from 'vitest'
import { TokenError, type TokenSource } from '../../../src/client/tokens/token-source.ts'
import { audienceOf, createTokens } from '../../../src/client/tokens/tokens.ts'
import { makeToken } from '../../servers/token-site.ts'

const SIGNAL = new AbortController().signal
const MINUTE = 60_000

/** A source whose tokens live five minutes, and a clock to turn. */
function prepare({
  lifeMs = 5 * MINUTE,
  isRenewable = true,
  make = undefined as (() => string) | undefined,
} = {}) {
  const state = { now: 1_800_000_000_000, fetched: 0, failing: undefined as Error | undefined }
  const learnt: string[] = []
  const source: TokenSource = {
    name: 'test',
    isRenewable,
    async fetch() {
      await null
      if (state.failing) throw state.failing
      state.fetched++
      return make?.() ?? makeToken({ exp: (state.now + lifeMs) / 1000 })
    },
  }
  const learn = (token: string) => void learnt.push(token)
  const tokens = createTokens(source, {
    audience: 'https://img.example',
    limitMs: 30_000,
    isOptional: false,
    learn,
    now: () => state.now,
  })
  return { state, tokens, get: async () => (await tokens.get(SIGNAL)) ?? '', learnt }
}

it('a job that uploads for eleven minutes with tokens of five never sends one that has less than a minute left', async () => {
  const { state, get, learnt } = prepare()
  const ends = new Map<string, number>()
  for (let second = 0; second <= 11 * 60; second++) {
    const token = await get()
    if (!ends.has(token)) ends.set(token, state.now + 5 * MINUTE)
    expect((ends.get(token) ?? 0) - state.now).toBeGreaterThan(MINUTE)
    state.now += 1000
  }
  expect(state.fetched).toBe(3)
  expect(learnt).toHaveLength(3)
})

it.each([
  ['lives less than a minute', 2000],
  ['seems to have expired, since the clock of this machine is wrong', -60 * MINUTE],
])('a token that %s is used for one request', async (_, lifeMs) => {
  const { state, get } = prepare({ lifeMs })
  expect(await get()).not.toBe(await get())
  expect(state.fetched).toBe(2)
})

it('twenty requests at once share one renewal', async () => {
  const { state, tokens } = prepare()
  const all = await Promise.all(Array.from({ length: 20 }, () => tokens.get(SIGNAL)))
  expect(state.fetched).toBe(1)
  expect(new Set(all).size).toBe(1)
  const used = all[0] ?? ''
  const replaced = await Promise.all(Array.from({ length: 20 }, () => tokens.replace(used, SIGNAL)))
  expect(state.fetched).toBe(2)
  expect(new Set(replaced).size).toBe(1)
  expect(replaced[0]).not.toBe(used)
})

it('a failure is told, and the next request tries again', async () => {
  const { state, get } = prepare()
  state.failing = new TokenError('It is away.', { transient: { retryAfterS: undefined } })
  await expect(get()).rejects.toThrow('It is away.')
  state.failing = undefined
  expect(await get()).toMatch(/^eyJ/)
})

it.each([
  'opaque-0123456789',
  'a.b.c',
  makeToken({ exp: 'soon' }),
  makeToken({ exp: -1 }),
  makeToken({ exp: 1e300 }),
  makeToken({}),
  'eyJhbGciOiJub25lIn0.bnVsbA.',
])('a token whose end can not be read, %s, is kept until it is refused', async text => {
  const { state, get, tokens } = prepare({ make: () => text })
  const token = await get()
  state.now += 1000 * MINUTE
  expect(await get()).toBe(token)
  await tokens.replace(token, SIGNAL)
  expect(state.fetched).toBe(2)
})

it('a token that can not be renewed is not asked for twice, and its end is told', async () => {
  const { state, get, tokens } = prepare({ isRenewable: false })
  const token = await get()
  expect(tokens.explain(token)).toContain('"audience" must be "https://img.example"')
  state.now += 6 * MINUTE
  expect(await get()).toBe(token)
  expect(await tokens.replace(token, SIGNAL)).toBeUndefined()
  expect(tokens.explain(token)).toMatch(/^The token in test expired at 20\S+ \S+ and can't be renewed\./)
  expect(state.fetched).toBe(1)
})

it.each([
  ['https://img.example.com', 'https://img.example.com'],
  ['https://img.example.com/', 'https://img.example.com'],
  ['HTTPS://IMG.example.com:443/upload', 'https://img.example.com'],
  ['http://127.0.0.1:36677/upload/', 'http://127.0.0.1:36677'],
  ['https://me:secret@example.com/img/upload?key=secret#x', 'https://example.com/img'],
  ['https://example.com/img//', 'https://example.com/img'],
])('the audience of %s is %s', (server, audience) => {
  expect(audienceOf(server)).toBe(audience)
})
