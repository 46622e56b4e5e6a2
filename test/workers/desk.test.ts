import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createSharedTurns } from '../../src/uploader/delivery/shared-turns.ts'
import { createDesk } from '../../src/workers/desk.ts'

function openTwo() {
  const turns = createSharedTurns()
  const open = () => createDesk(turns, async () => '')
  return [open(), open()] as const
}

describe('what workers share', () => {
  it('is a name that one of them has, until it is released or its worker is gone', async () => {
    const [one, other] = openTwo()
    expect(await one.methods.take('a', 'x')).toBe('free')
    expect(await other.methods.take('a', 'y')).toBe('taken')
    other.methods.release('a') // which is not its own
    expect(await other.methods.take('a', 'y')).toBe('taken')
    one.methods.release('a')
    expect(await other.methods.take('a', 'y')).toBe('free')
    expect(await other.methods.take('b', 'y')).toBe('free')
    other.close()
    expect(await one.methods.take('a', 'x')).toBe('free')
    expect(await one.methods.take('b', 'x')).toBe('free')
    await expect(other.methods.take('c', 'y')).rejects.toThrow()
  })

  it('is what one of them stores under a name, for whoever has the same content', async () => {
    const [one, other] = openTwo()
    const stored = { url: 'https://img.example/a.png' }
    await one.methods.take('a', 'x')
    const waiting = [other.methods.take('a', 'x'), other.methods.take('a', 'x')]
    other.methods.settle('a', { url: 'https://img.example/not-its-own' })
    one.methods.settle('a', stored)
    one.methods.release('a')
    expect(await Promise.all(waiting)).toEqual([stored, stored])
    other.methods.release('a')
    expect(await one.methods.take('a', 'y')).toBe('taken')
    other.close()
    expect(await one.methods.take('a', 'y')).toBe('free')
  })

  it('passes to a worker that waits for the same content when the one that had it dies', async () => {
    const [one, other] = openTwo()
    await one.methods.take('a', 'x')
    const waiting = other.methods.take('a', 'x')
    one.close()
    expect(await waiting).toBe('free')
  })

  it('is a turn, which passes on when it is left, given up or its worker is gone', async () => {
    const [one, other] = openTwo()
    const order: string[] = []
    const enter = (desk: typeof one, number: number, name: string) =>
      void desk.methods.enter(number, 'queue').then(() => order.push(name))
    await one.methods.enter(1, 'queue')
    enter(other, 1, 'other')
    enter(one, 2, 'given up')
    enter(other, 2, 'of one that dies')
    enter(one, 3, 'last')
    await one.methods.enter(4, 'another queue')
    await turn()
    expect(order).toEqual([])
    one.methods.leave(2)
    one.methods.leave(1)
    await turn()
    expect(order).toEqual(['given up', 'other'])
    other.close()
    await turn()
    expect(order).toContain('last')
  })
})
