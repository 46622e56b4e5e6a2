import { readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { openSqlite as openDatabase } from '../../src/store/sqlite.ts'
import { begin, finish } from '../../src/store/uploads.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { addEntry, closed, newFile, newOwnerIn, newUpload } from '../helpers/stores.ts'

const AT = { destination: 'local/blog', location: '/srv/blog/' }

it('writes few pages of SQLite for an upload', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const database = closed(openDatabase(path))
  await newOwnerIn(database)
  const before = (await stat(`${path}-wal`)).size
  const uploads = 20
  for (let n = 0; n < uploads; n++) {
    const upload = newUpload()
    const [key, sha256] = [`${n}.png`, `${n}`.padStart(64, '0')]
    const rest = { onConflict: 'rename', isContentKey: true, dedupe: false, expiresAt: null } as const
    const file = { index: 0, size: 1, wanted: [{ ...AT, key, sha256, ...rest }] }
    await begin(database, upload, { id: upload.id, claimed: new Set() }, [file], {})
    await finish(database, upload, { state: 'done', files: [newFile({ key, sha256 })], failed: [] })
  }
  const bytes = (await stat(`${path}-wal`)).size - before
  // The rows of the upload, the object and the file, and their indexes; now and then one is full.
  expect(bytes / uploads / (4096 + 24)).toBeLessThan(16.4)
})

it('a damaged page of the history is named, and is not a bug in the server', async () => {
  const directory = await makeDirectory()
  const [made, path] = ['made.db', 'store.db'].map(name => join(directory, name)) as [string, string]
  const whole = openDatabase(made)
  await addEntry(whole)
  await whole.close()
  const database = openSqlite(made)
  const { page } = database.prepare("select rootpage as page from sqlite_schema where name = 'files'").get()
  database.close()
  const bytes = await readFile(made)
  await writeFile(path, bytes.fill(0xff, (page - 1) * 4096, page * 4096))
  const damaged = closed(openDatabase(path))
  await expect(damaged.read(db => findFiles(db, { limit: 1 }))).rejects.toMatchObject({
    code: 'database_unavailable',
    message: expect.stringContaining('is damaged or not an SQLite database (SQLITE_CORRUPT)'),
  })
})

it('keeps the SQLite file from other users', async () => {
  const path = join(await makeDirectory(), 'new', 'store.db')
  await addEntry(closed(openDatabase(path)))
  const modeOf = async (file: string) => (await stat(file)).mode & 0o777
  expect(await modeOf(dirname(path))).toBe(0o700)
  for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(await modeOf(file)).toBe(0o600)
})

it('waits for a SQLite file that another program has locked, and works again once it is free', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const database = closed(openDatabase(path, { patienceMs: 500 }))
  await addEntry(database)
  const other = openSqlite(path)
  other.exec('begin immediate')
  const waiting = addEntry(database)
  setTimeout(() => other.exec('commit'), 200)
  await waiting
  expect(database.problem()).toBeUndefined()
  other.exec('begin immediate')
  await expect(addEntry(database)).rejects.toMatchObject({ code: 'database_unavailable', retryAfterS: 5 })
  expect(await database.read(db => findFiles(db, { limit: 1 })), 'reading goes on').toHaveLength(1)
  other.exec('commit')
  await addEntry(database)
  other.close()
})
