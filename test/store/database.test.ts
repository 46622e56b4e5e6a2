import { createHash } from 'node:crypto'
import { describe, expect } from 'vitest'
import { SCHEMA, SCHEMA_VERSION } from '../../src/store/schema.ts'
import { sql } from '../../src/store/sql.ts'
import { readUpload } from '../../src/store/upload-rows.ts'
import { addEntry, newUpload, storeTest } from '../helpers/stores.ts'

const it = storeTest()

describe('a database', () => {
  it('can be opened by several at the same time for the first time', async ({ place }) => {
    const databases = Array.from({ length: 6 }, () => place.open())
    await Promise.all(databases.map(one => one.read(db => readUpload(db, 'none'))))
  })

  it('of another version of its schema is refused, and is named with what to do', async ({ place }) => {
    await addEntry(place.open())
    await place.setVersion(SCHEMA_VERSION + 1)
    for (const use of ['create', 'read'] as const)
      await expect(place.open(use).read(db => db.now())).rejects.toThrow(
        /^The database of the server, "?\w+(\.db)?"?, was made by another version of upload-server\. Use that version, or set database\.path or/,
      )
  })

  it('runs a transaction while another one is under way, and neither becomes a part of the other', async ({
    database,
  }) => {
    const add = (id: string) =>
      database.tx(db => db.run(sql`insert into owners (id, seen_at) values (${id}, 1)`))
    let beside: Promise<unknown> = Promise.resolve()
    const failing = database.tx(async db => {
      await db.run(sql`insert into owners (id, seen_at) values ('rolled back', 1)`)
      beside = add('beside')
      await new Promise(resolve => setImmediate(resolve))
      throw new Error('of no use')
    })
    await expect(failing).rejects.toThrow('of no use')
    await beside
    expect(await database.read(db => db.all(sql`select id from owners`))).toEqual([{ id: 'beside' }])
  })

  it('a transaction that fails takes back none of those that began at the same time', async ({
    database,
  }) => {
    const ids = ['a', 'b', 'fails', 'c', 'd']
    const add = (id: string) =>
      database.tx(async db => {
        await db.run(sql`insert into owners (id, seen_at) values (${id}, 1)`)
        if (id === 'fails') throw new Error('of no use')
        return id
      })
    const results = await Promise.allSettled(ids.map(add))
    expect(results.map(one => (one.status === 'fulfilled' ? one.value : 'failed'))).toEqual(
      ids.map(id => (id === 'fails' ? 'failed' : id)),
    )
    const rows = await database.read(db => db.all<{ id: string }>(sql`select id from owners order by id`))
    expect(rows.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('accepts nothing once it is closed', async ({ database }) => {
    await addEntry(database)
    await database.close()
    await expect(addEntry(database)).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('takes values that look like parts of a statement as they are', async ({ database }) => {
    const text = `$1 ?1 ' " -- %_\\ 😀`
    await addEntry(database, { ...newUpload(), origin: text })
    const rows = await database.read(db =>
      db.all(sql`select origin from files where ${sql`origin = ${text}`}`),
    )
    expect(rows).toEqual([{ origin: text }])
  })
})

it('the version of the schema is raised when its tables change', () => {
  const tables = createHash('sha256').update(SCHEMA.join().replace(/\s+/g, ' ')).digest('hex').slice(0, 8)
  expect([SCHEMA_VERSION, tables]).toEqual([2, 'de617d00'])
})
