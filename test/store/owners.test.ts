import { afterEach, describe, expect, vi } from 'vitest'
import { dropOwner } from '../../src/flow/owner.ts'
import type { Database } from '../../src/store/database.ts'
import { createOwner, isAlive, listServers } from '../../src/store/owners.ts'
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

describe('servers', () => {
  it('are found in one order while they live, also if the database was down when they started', async ({
    database,
  }) => {
    const list = () => database.read(listServers)
    const serve = (name: string) => ({ url: `http://127.0.0.1:${name}`, destinations: ['local/a /files/'] })
    let isDown = true
    const tx: Database['tx'] = work => (isDown ? Promise.reject(new Error('down')) : database.tx(work))
    const late = createOwner({ ...database, tx })
    await expect(late.serve(serve('1'))).rejects.toThrow('down')
    const other = createOwner(database)
    await other.serve(serve('2'))
    await createOwner(database).beat() // a command
    expect(await list()).toEqual([serve('2')])
    isDown = false
    await late.beat()
    const both = await list()
    expect(new Set(both)).toEqual(new Set([serve('1'), serve('2')]))
    for (const owner of [other, late, other]) {
      await kill(database, owner.id)
      await owner.beat()
      await database.tx(db => db.run(sql`update owners set seen_at = seen_at - 1000 where id = ${owner.id}`))
      expect(await list()).toEqual(both)
    }
    dropOwner(late.id)
    expect(await list(), 'its process has ended').toEqual([serve('2')])
    await other.end()
    expect(await list()).toEqual([])
  })

  it('of another machine are not found', async ({ database }) => {
    const owner = createOwner(database)
    await owner.serve({ url: 'http://127.0.0.1:1', destinations: [] })
    await database.tx(db => db.run(sql`update owners set id = ${`other-12345678.1.${'a'.repeat(12)}`}`))
    expect(await database.read(listServers)).toEqual([])
  })
})
