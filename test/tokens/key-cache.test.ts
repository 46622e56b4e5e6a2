import { beforeEach, expect, it } from 'vitest'
import { createKeyCache, KeysUnavailable } from '../../src/tokens/key-cache.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let time = 0
let asked = 0
let answer: () => Promise<string> = async () => 'keys'
const warnings: string[] = []

const now = () => time
const load = () => {
  asked++
  return answer()
}
const away = async () => {
  throw new Error('no route')
}
const open = () => createKeyCache<string>(reason => warnings.push(reason), now)

beforeEach(() => {
  time = 1_000_000
  asked = 0
  answer = async () => `keys ${asked}`
  warnings.length = 0
})

it('keys are fetched once in ten minutes', async () => {
  const cache = open()
  expect(await cache.current(load)).toBe('keys 1')
  time += 10 * MINUTE - 1
  expect(await cache.current(load)).toBe('keys 1')
  time += 1
  expect(await cache.current(load)).toBe('keys 2')
})

it('a hundred requests at once share one fetch', async () => {
  const cache = open()
  await Promise.all(Array.from({ length: 100 }, () => cache.current(load)))
  expect(asked).toBe(1)
})

it('attack: tokens with ever new key IDs cause one fetch in 30 s', async () => {
  const cache = open()
  const known = await cache.current(load)
  expect(await cache.newerThan(known, load)).toBeUndefined()
  expect(asked).toBe(1)
  time += 30_000
  expect(await cache.newerThan(known, load)).toBe('keys 2')
  for (let i = 0; i < 29; i++) {
    time += 1000
    expect(await cache.newerThan('keys 2', load)).toBeUndefined()
  }
  expect(asked).toBe(2)
})

it('keys that were fetched for another request meanwhile are newer, too', async () => {
  const cache = open()
  const known = await cache.current(load)
  time += 10 * MINUTE
  await cache.current(load)
  expect(await cache.newerThan(known, load)).toBe('keys 2')
})

it('a failure is not repeated before 30 s have passed, and says when to try again', async () => {
  const cache = open()
  answer = away
  await expect(cache.current(load)).rejects.toMatchObject({ message: 'no route', retryAfterS: 30 })
  time += 12_000
  await expect(cache.current(load)).rejects.toMatchObject({ retryAfterS: 18 })
  expect(asked).toBe(1)
  expect(warnings).toEqual(['no route'])
  time += 18_000
  answer = async () => 'keys'
  expect(await cache.current(load)).toBe('keys')
})

it('cached keys hold for a day while the key server is away, asked every 30 s', async () => {
  const cache = open()
  await cache.current(load)
  answer = away
  time += 11 * MINUTE
  expect(await cache.current(load)).toBe('keys 1')
  expect(await cache.current(load)).toBe('keys 1')
  expect(asked).toBe(2)
  time += 30_000
  expect(await cache.current(load)).toBe('keys 1')
  expect(asked).toBe(3)
  time += 23 * HOUR
  expect(await cache.current(load)).toBe('keys 1')
  time += HOUR
  await expect(cache.current(load)).rejects.toBeInstanceOf(KeysUnavailable)
  answer = async () => 'new keys'
  time += 30_000
  expect(await cache.current(load)).toBe('new keys')
})
