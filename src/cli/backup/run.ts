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
  const { driver, url = '' } = config.settings.database
  if (driver === 'postgres') {
    const words = ['pg_dump', '--format', 'custom', '--file', file, withoutPassword(url)]
    const command = words.map(word => quote(word, terminal.platform)).join(' ')
    terminal.note(`The database is PostgreSQL, which has its own backup. Run:\n  ${command}`)
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

/** Parameters that `pg_dump` accepts. It rejects those that only the server knows, such as `query_timeout`. */
const SHARED = ['host', 'port', 'dbname', 'user', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']

function withoutPassword(text: string): string {
  if (!URL.canParse(text)) return 'postgresql://USER@HOST:5432/DATABASE'
  const url = new URL(text)
  url.password = ''
  for (const name of [...url.searchParams.keys()]) if (!SHARED.includes(name)) url.searchParams.delete(name)
  return url.href
}
