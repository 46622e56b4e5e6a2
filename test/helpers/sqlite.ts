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
