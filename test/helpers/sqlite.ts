import { loadSqlite, type SqliteDatabase } from '../../src/store/sqlite-library.ts'

/** A connection of our own to an SQLite file, as another program has one. */
export function openSqlite(path: string, timeout = 0): SqliteDatabase {
  const { DatabaseSync } = loadSqlite()
  return new DatabaseSync(path, { timeout })
}

/** Keeps every other program from writing to an SQLite file. @returns ends that */
export function lockSqlite(path: string, how: 'immediate' | 'exclusive' = 'immediate'): () => void {
  const database = openSqlite(path)
  database.exec(`begin ${how}`)
  return () => {
    database.exec('rollback')
    database.close()
  }
}

/** A database with some rows. @returns what adds another one, and what closes it */
export function fillSqlite(path: string, rows: number) {
  const database = openSqlite(path, 5000)
  database.exec('pragma journal_mode = WAL; create table rows (id integer primary key, body blob)')
  const insert = database.prepare('insert into rows (body) values (randomblob(4000))')
  database.exec('begin')
  for (let row = 0; row < rows; row++) insert.run()
  database.exec('commit')
  return { insert, close: () => database.close() }
}
