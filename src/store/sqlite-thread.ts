import { Worker } from 'node:worker_threads'
import { sqliteModule } from './sqlite-library.ts'

/** Another process may run the same statement. */
const BUSY_MS = 60_000

const PROGRAM = `
const { workerData } = require('node:worker_threads')
const { createRequire } = require('node:module')
const { DatabaseSync } = createRequire(workerData.from)(workerData.name)
const database = new DatabaseSync(workerData.path, { timeout: workerData.timeout })
try {
  database.exec(workerData.statement)
  database.exec('pragma wal_checkpoint(TRUNCATE)') // else the next commit elsewhere does it
} finally {
  database.close()
}`

/** Runs a statement in a thread, because SQLite blocks its thread. Meanwhile the file can be read but not written. */
export async function runInThread(path: string, statement: string): Promise<void> {
  const workerData = { from: import.meta.url, name: sqliteModule(), path, statement, timeout: BUSY_MS }
  const execArgv = ['--disable-warning=ExperimentalWarning']
  const thread = new Worker(PROGRAM, { eval: true, workerData, execArgv })
  await new Promise<void>((resolve, reject) => {
    thread.once('error', reject)
    thread.once('exit', () => resolve())
  })
}
