/**
 * Loaded before the server by system-calls.mjs, on a Node whose own SQLite the server does not use: counts promises and
 * commits of SQLite, and writes both to the file in COUNTS at SIGUSR2.
 */
import { createHook } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const NAME = '@photostructure/sqlite'
const library = require(NAME)
let promises = 0
let commits = 0

class DatabaseSync extends library.DatabaseSync {
  prepare(text) {
    const statement = super.prepare(text)
    if (text !== 'commit') return statement
    return {
      columns: () => statement.columns(),
      run() {
        commits++
        return statement.run()
      },
    }
  }
}
require.cache[require.resolve(NAME)].exports = { ...library, DatabaseSync }
createHook({
  init(_, type) {
    if (type === 'PROMISE') promises++
  },
}).enable()
process.on('SIGUSR2', () => writeFileSync(process.env.COUNTS, JSON.stringify({ promises, commits })))
