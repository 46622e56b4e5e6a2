import { resolve } from 'node:path'
import { databasePathOf } from '../../config/paths.ts'
import { backUpSqlite } from '../../store/backup.ts'
import type { Call } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import { openConfig } from '../open.ts'
import { quote, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** `upload-server backup FILE`: writes a copy of the database. */
export async function run(
  { words: [file = ''], options }: Call<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  const config = await openConfig(options, terminal)
  if (config.settings.database.driver === 'postgres') {
    const command = `pg_dump --format custom --file ${quote(file, terminal.platform)} "$DATABASE_URL"`
    terminal.note(
      `The database is PostgreSQL, which has its own backup. With its URL in DATABASE_URL, run:\n  ${command}`,
    )
    return EXIT.failed
  }
  const signal = terminal.untilInterrupted()
  const path = databasePathOf(config)
  try {
    const entries = await backUpSqlite(path, resolve(terminal.cwd, file), signal)
    const what = entries === 1 ? '1 history entry' : `${entries} history entries`
    terminal.note(`Backed up "${path}" to "${file}": ${what}.`)
    return EXIT.done
  } catch (error) {
    if (!signal.aborted) throw error
    terminal.note('Interrupted. No backup was written.')
    return EXIT.interrupted
  }
}
