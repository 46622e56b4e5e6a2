import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'

/** Another process may be at the same. */
const BUSY_MS = 60_000

const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const database = new (require(workerData.library))(workerData.path)
try {
  database.pragma('busy_timeout = ' + workerData.busyMs)
  database.exec(workerData.statement)
  database.pragma('wal_checkpoint(TRUNCATE)') // else the next commit elsewhere does it
} catch (error) {
  parentPort.postMessage({ message: error.message, code: error.code })
} finally {
  database.close()
}`

/** Does a statement in a thread, since SQLite holds up the one it works in. Meanwhile the file can be read, and not written. */
export async function runInThread(path: string, statement: string): Promise<void> {
  const library = createRequire(import.meta.url).resolve('libsql')
  const workerData = { library, path, statement, busyMs: BUSY_MS }
  const thread = new Worker(PROGRAM, { eval: true, workerData })
  await new Promise<void>((resolve, reject) => {
    thread.once('message', ({ message, code }) => reject(Object.assign(new Error(message), { code })))
    thread.once('error', reject)
    thread.once('exit', () => resolve())
  })
}
