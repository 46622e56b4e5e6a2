import { describe, expect, it } from 'vitest'
import { TokenError, type TokenSource } from '../../../src/client/tokens/token-source.ts'
import { audienceOf, createTokens } from '../../../src/client/tokens/tokens.ts'
import { makeToken } from '../../servers/token-site.ts'

const SIGNAL = new AbortController().signal
const MINUTE = 60_000

/** A source whose tokens live five minutes, and a clock to turn. */
function prepare({
  lifeMs = 5 * MINUTE,
  aheadMs = 0,
  isRenewable = true,
  make = undefined as ((now: number) => string) | undefined,
} = {}) {
  const state = { now: 1_800_000_000_000, fetched: 0, failing: undefined as Error | undefined }
  const learnt: string[] = []
  const noted: string[] = []
  const source: TokenSource = {
    name: 'test',
    isRenewable,
    async fetch() {
      await null
      if (state.failing) throw state.failing
      state.fetched++
      const iat = (state.now + aheadMs) / 1000
      return make?.(state.now) ?? makeToken({ iat, exp: iat + lifeMs / 1000 })
    },
  }
  const context = {
    learn: (secrets: readonly string[]) => void learnt.push(...secrets),
    maskInJobLog: (secret: string) => void noted.push(secret),
  }
  const clocks = { wall: () => state.now, steady: () => state.now - 1_700_000_000_000 }
  const tokens = createTokens(source, { isAskedFor: true, audience: 'https://img.example' }, context, clocks)
  const get = async () => (await tokens.get(SIGNAL))?.token
  return { state, tokens, get, learnt, noted }
}

describe('a job that uploads for eleven minutes with tokens of five', () => {
  it('never sends one that has less than a minute left, and asks three times', async () => {
    const { state, get, learnt, noted } = prepare()
    for (let second = 0; second <= 11 * 60; second++) {
      const token = await get()
      expect((token?.expiresAt ?? 0) - state.now).toBeGreaterThan(MINUTE - 1)
      state.now += 1000
    }
    expect(state.fetched).toBe(3)
    expect(learnt).toHaveLength(3)
    expect(noted).toEqual(learnt)
  })

  it.each([
    ['ahead', 60 * MINUTE],
    ['behind', -60 * MINUTE],
  ])('does so with an issuer whose clock is %s', async (_, aheadMs) => {
    const { state, get } = prepare({ aheadMs })
    for (let second = 0; second <= 11 * 60; second++) {
      await get()
      state.now += 1000
    }
    expect(state.fetched).toBe(3)
  })
})

it('a token of two seconds is renewed after 1.6', async () => {
  const { state, get } = prepare({ lifeMs: 2000 })
  await get()
  state.now += 1500
  await get()
  expect(state.fetched).toBe(1)
  state.now += 200
  await get()
  expect(state.fetched).toBe(2)
})

it('a token that was half used when it came is renewed by its end, not by its age', async () => {
  const made = (now: number) => makeToken({ iat: (now - 3 * MINUTE) / 1000, exp: (now + 2 * MINUTE) / 1000 })
  const { state, get } = prepare({ make: made })
  await get()
  state.now += 61_000
  await get()
  expect(state.fetched).toBe(2)
})

it('twenty requests at once share one renewal', async () => {
  const { state, tokens } = prepare()
  const all = await Promise.all(Array.from({ length: 20 }, () => tokens.get(SIGNAL)))
  expect(state.fetched).toBe(1)
  expect(new Set(all.map(one => one?.token.text)).size).toBe(1)
  const used = all[0]?.token
  if (!used) throw new Error('no token')
  const replaced = await Promise.all(Array.from({ length: 20 }, () => tokens.replace(used, SIGNAL)))
  expect(state.fetched).toBe(2)
  expect(new Set(replaced.map(one => one?.text)).size).toBe(1)
})

it('the old token is used to its end while no new one can be had', async () => {
  const { state, get } = prepare()
  const first = await get()
  state.failing = new TokenError('It is away.', { isTransient: true })
  state.now += 4.5 * MINUTE
  expect(await get()).toBe(first)
  state.now += MINUTE
  await expect(get()).rejects.toThrow('It is away.')
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
  expect(token?.expiresAt).toBeUndefined()
  await tokens.replace(token as { text: string; expiresAt: undefined }, SIGNAL)
  expect(state.fetched).toBe(2)
})

it('a token that can not be renewed is not asked for twice, and its end is told', async () => {
  const { state, get, tokens } = prepare({ isRenewable: false })
  const token = await get()
  if (!token) throw new Error('no token')
  expect(tokens.explain(token)).toContain('"audience" must be "https://img.example"')
  state.now += 6 * MINUTE
  expect(await get()).toBe(token)
  expect(await tokens.replace(token, SIGNAL)).toBeUndefined()
  expect(tokens.explain(token)).toMatch(/^The token in test expired at 20\S+Z and can't be renewed\./)
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
