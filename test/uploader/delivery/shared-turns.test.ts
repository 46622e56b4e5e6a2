import { describe, expect, it } from 'vitest'
import { createSharedTurns } from '../../../src/uploader/delivery/shared-turns.ts'

const never = new AbortController().signal
const STORED = { url: 'https://x.example/a.png' }

describe('a name', () => {
  it('is free for the first, taken for other content, and free again once released', () => {
    const turns = createSharedTurns()
    expect(turns.take('a', 'one', never)).toBe('free')
    expect(turns.take('a', 'two', never)).toBe('taken')
    expect(turns.take('b', 'two', never)).toBe('free')
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('free')
  })

  it('of the same content gives what was stored under it, and stays until all have released it', () => {
    const turns = createSharedTurns()
    turns.take('a', 'one', never)
    turns.settle('a', STORED)
    expect(turns.take('a', 'one', never)).toBe(STORED)
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('taken')
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('free')
  })

  it('of the same content that is being stored is waited for, and kept for those who waited', async () => {
    const turns = createSharedTurns()
    turns.take('a', 'one', never)
    const waiting = [turns.take('a', 'one', never), turns.take('a', 'one', never)]
    turns.settle('a', STORED)
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('taken')
    expect(await Promise.all(waiting)).toEqual([STORED, STORED])
    turns.release('a')
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('free')
  })

  it('whose first holder failed goes to one of those who wait', async () => {
    const turns = createSharedTurns()
    turns.take('a', 'one', never)
    const [second, third] = [turns.take('a', 'one', never), turns.take('a', 'one', never)]
    turns.release('a')
    expect(await second).toBe('free')
    turns.settle('a', STORED)
    expect(await third).toBe(STORED)
  })

  it('is not kept for somebody who has left', async () => {
    const turns = createSharedTurns()
    turns.take('a', 'one', never)
    const leaving = new AbortController()
    const waiting = turns.take('a', 'one', leaving.signal)
    const reason = new Error('gone')
    leaving.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    turns.release('a')
    expect(turns.take('a', 'two', never)).toBe('free')
  })
})

it('work of one name goes on alone, in the order of the calls; of another it does not wait', async () => {
  const turns = createSharedTurns()
  const order: string[] = []
  let end = () => {}
  const first = turns.inTurn('a', () => new Promise<void>(resolve => (end = resolve)), never)
  const second = turns.inTurn('a', async () => void order.push('second'), never)
  await turns.inTurn('b', async () => void order.push('other'), never)
  order.push('first')
  end()
  await Promise.all([first, second])
  expect(order).toEqual(['other', 'first', 'second'])
})
