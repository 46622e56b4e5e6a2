/** Saves results of the scripts: one part for each. */
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'

export const readResults = async file => JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))

/** Replaces one part of a file of results, and keeps the others. */
export async function saveResults(file, name, rows) {
  const part = {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    rows,
  }
  await writeFile(file, `${JSON.stringify({ ...(await readResults(file)), [name]: part }, null, 2)}\n`)
}
