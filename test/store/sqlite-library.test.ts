import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { openSqlite } from '../../src/store/sqlite.ts'
import { loadSqlite, sqliteModule } from '../../src/store/sqlite-library.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { addEntry, closed } from '../helpers/stores.ts'

describe('the SQLite of Node', () => {
  it.each(['3.51.3', '3.51.10', '3.53.0', '4.0.0'])('is used when it is %s', version => {
    expect(sqliteModule(version)).toBe('node:sqlite')
  })

  it.each(['3.51.2', '3.45.1', '3.9.9', '2.99.99', ''])(
    'is left alone when it is "%s": writers at the same time may lose commits',
    version => {
      expect(sqliteModule(version)).toBe('@photostructure/sqlite')
    },
  )
})

it('a store is not opened with an SQLite in which writers at the same time may lose commits', async () => {
  const { DatabaseSync } = loadSqlite()
  class Older extends DatabaseSync {
    override prepare(text: string) {
      return super.prepare(text.replace('sqlite_version()', "'3.45.1'"))
    }
  }
  const path = join(await makeDirectory(), 'store.db')
  const database = closed(openSqlite(path, { library: { DatabaseSync: Older } }))
  await expect(addEntry(database)).rejects.toMatchObject({
    code: 'database_unavailable',
    message: expect.stringMatching(
      /needs SQLite 3\.51\.3 or newer, .* SQLite 3\.45\.1.*Update SQLite or Node/,
    ),
  })
})

it('Node does not announce on standard error that its SQLite is experimental, and says everything else', async () => {
  const directory = await makeDirectory()
  const script = join(directory, 'open.mjs')
  const library = new URL('../../build/store/sqlite.js', import.meta.url)
  await writeFile(
    script,
    `import { openSqlite } from ${JSON.stringify(library.href)}
     const database = openSqlite(${JSON.stringify(join(directory, 'store.db'))})
     await database.tx(db => db.now())
     await database.close()
     process.emitWarning('something else', 'ExperimentalWarning')`,
  )
  const { stderr } = await promisify(execFile)(process.execPath, [script])
  expect(stderr).toMatch(/^\(node:\d+\) ExperimentalWarning: something else\n\(Use .*\)\n$/)
})
