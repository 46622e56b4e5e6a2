import { afterEach, describe, expect, vi } from 'vitest'
import { dropOwner } from '../../src/flow/owner.ts'
import { createOwner, isAlive } from '../../src/store/owners.ts'
import { sql } from '../../src/store/sql.ts'
import { kill, storeTest } from '../helpers/stores.ts'

afterEach(() => void vi.useRealTimers())

const it = storeTest()

describe('a process', () => {
  it('is alive from its first sign of life to its end', async ({ database }) => {
    const owner = createOwner(database)
    const isThere = () => database.read(db => isAlive(db, owner.id))
    expect(await isThere()).toBe(false)
    await owner.keepAlive()
    expect(await isThere()).toBe(true)
    await kill(database, owner.id)
    expect(await isThere(), 'after its lease').toBe(false)
    await owner.beat()
    expect(await isThere()).toBe(true)
    await owner.end()
    expect(await isThere()).toBe(false)
  })

  it('of this machine that has ended is not waited for', async ({ database }) => {
    const owner = createOwner(database)
    await owner.beat()
    dropOwner(owner.id)
    expect(await database.read(db => isAlive(db, owner.id))).toBe(false)
  })

  it('gives a sign of life only if the last one is some seconds old', async ({ database }) => {
    const owner = createOwner(database)
    await owner.keepAlive()
    await kill(database, owner.id)
    await owner.keepAlive()
    expect(await database.read(db => db.all(sql`select seen_at from owners`))).toEqual([{ seen_at: 0 }])
  })

  it('on a machine that was asleep does not count itself or others as ended', async ({ database }) => {
    const owner = createOwner(database)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
    for (let n = 0; n < 2; n++) await owner.beat()
    expect(owner.isContinuous()).toBe(true)
    vi.setSystemTime(Date.now() + 3_600_000)
    await owner.keepAlive()
    expect(await database.read(db => isAlive(db, owner.id))).toBe(true)
    expect(owner.isContinuous()).toBe(false)
  })
})
