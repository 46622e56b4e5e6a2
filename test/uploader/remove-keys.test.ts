import { expect, it } from 'vitest'
import type { Target } from '../../src/providers/contract.ts'
import type { Destination } from '../../src/uploader/destinations.ts'
import { removeKeys } from '../../src/uploader/remove-keys.ts'

const down = new Error('down')
const at = (target: Partial<Target>) => ({ target }) as Destination
const never = () => new AbortController().signal

it('removes several objects with one call where the destination can', async () => {
  const calls: (readonly string[])[] = []
  const removeMany = async (keys: readonly string[]) => {
    calls.push(keys)
    return new Map([['b', down]])
  }
  expect([...(await removeKeys(at({ removeMany }), ['a', 'b'], never()))]).toEqual([['b', down]])
  expect(calls).toEqual([['a', 'b']])
})

it('removes one after the other elsewhere, and goes on after a failure', async () => {
  const removed: string[] = []
  const remove = async (key: string) => {
    if (key === 'b') throw down
    removed.push(key)
  }
  expect([...(await removeKeys(at({ remove }), ['a', 'b', 'c'], never()))]).toEqual([['b', down]])
  expect(removed).toEqual(['a', 'c'])
})

it('a call that fails removes none of the objects', async () => {
  const removeMany = () => Promise.reject(down)
  const problems = await removeKeys(at({ removeMany }), ['a', 'b'], never())
  expect([...problems]).toEqual([
    ['a', down],
    ['b', down],
  ])
})
