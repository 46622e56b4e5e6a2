import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { HistoryEntry } from '../../../src/store/contract.ts'
import { openSqlite } from '../../../src/store/sqlite.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'
import { addEntry, closed, jobAt } from '../../helpers/stores.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

/** What is remembered here is of no destination of the embedded default. */
const history = (...args: string[]) => runCli(['history', '--all', ...args], { cwd })
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const openDatabase = () => closed(openSqlite(join(cwd, 'upload-server', 'store.db')))

/** Puts entries into the database of the embedded default, each of its own upload and object. */
async function remember(...changes: Partial<HistoryEntry>[]): Promise<void> {
  const database = openDatabase()
  for (const [n, change] of changes.entries()) {
    const { destination = 's3/blog' } = change
    await addEntry(database, {
      ...{ jobId: jobAt(change.time ?? Date.now(), `${n}`), destination, location: `${destination}/${n}/` },
      ...{ url: 'https://x.example/2026/cat.png', key: '2026/cat.png', size: 1234 },
      ...{ origin: 'cat.png', sha256: sha256('cat'), ...change },
    })
  }
  await database.close()
}

describe('a store that configurations share', () => {
  it('asks a person before it forgets, and says how much that would be', async context => {
    needs(context, 'python3', 'python3')
    const time = Date.now() - 9 * DAY_MS
    await remember({ time }, { time }, {})
    const asked = (answer: string) =>
      runOnTerminal(
        [
          'env',
          `HOME=${cwd}`,
          `XDG_DATA_HOME=${cwd}`,
          process.execPath,
          BIN,
          'history',
          'prune',
          '5d',
          '--all',
        ],
        [['Delete 2 entries older than 5d from the history?', answer]],
        cwd,
      )
    expect((await asked('n')).exitCode).toBe(1)
    expect(JSON.parse((await history('--json')).stdout)).toHaveLength(3)
    expect((await asked('y')).exitCode).toBe(0)
    expect(JSON.parse((await history('--json')).stdout)).toHaveLength(1)
  })
})
