import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const SWAP = `
const { renameSync, symlinkSync, unlinkSync, rmdirSync } = require('node:fs')
const [, path, target] = process.argv
const aside = path + '-aside'
console.log('begun')
for (;;) {
  try {
    renameSync(path, aside)
    if (target.startsWith('/')) symlinkSync(target, path)
    else renameSync(path + '-other', path)
    if (target.startsWith('/')) unlinkSync(path)
    else renameSync(path, path + '-other')
    renameSync(aside, path)
  } catch {
    try { renameSync(aside, path) } catch {}
  }
}`

/**
 * Has a process exchange what lies at a path for a link to `target`, or, without one, for what lies at `path-other`, and
 * back, as often as it can. It ends with the test.
 */
export async function swap(path: string, target = ''): Promise<void> {
  const child = spawn(process.execPath, ['-e', SWAP, path, target], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await once(child.stdout, 'data')
}
