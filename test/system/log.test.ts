import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { upload } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { needsLinux } from '../helpers/needs.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'

describe('a log that nobody reads ends nothing and fills nothing:', () => {
  /** Runs the built server in a pipeline of a real shell. `$SERVER` stands for its command line. */
  async function runInShell(pipeline: string) {
    const directory = await makeDirectory()
    const port = await findFreePorts()
    const pidFile = join(directory, 'pid')
    const script = `exec '${process.execPath}' '${BIN}' --port ${port} --log-level trace`
    await writeFile(join(directory, 'server.sh'), `echo $$ > '${pidFile}'\n${script} "$@"\n`)
    const shell = spawn('sh', ['-c', pipeline], {
      cwd: directory,
      env: environmentIn(directory, { SERVER: 'sh server.sh' }),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    shell.stdout.on('data', chunk => {
      output += chunk
    })
    let errors = ''
    shell.stderr.on('data', chunk => {
      errors += chunk
    })
    const ended = once(shell, 'close')
    const kill = async (signal: NodeJS.Signals) => {
      try {
        if (existsSync(pidFile)) process.kill(Number(await readFile(pidFile, 'utf8')), signal)
      } catch {} // gone already
    }
    onTestFinished(async () => {
      await kill('SIGKILL')
      await ended
    })
    const url = `http://127.0.0.1:${port}`
    await eventually(() => ask(url, 'GET', '/heartbeat'))
    return { url, directory, kill, ended, output: () => output, errors: () => errors }
  }

  async function sizeOf(directory: string): Promise<number> {
    const names = await readdir(directory, { recursive: true, withFileTypes: true })
    const files = names.filter(entry => entry.isFile() && !entry.name.startsWith('store.db'))
    const sizes = files.map(async entry => (await stat(join(entry.parentPath, entry.name))).size)
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }

  it.for<[string, string]>([
    ['its reader went away', '$SERVER | head -1'],
    ['its reader went away, and with it standard error', '$SERVER 2>&1 | head -1'],
    ['standard output is closed', '$SERVER >&-'],
    ['everything is closed', '$SERVER <&- >&- 2>&-'],
    ['the disk is full', '$SERVER > /dev/full'],
    ['the disk is full for both', '$SERVER > /dev/full 2>&1'],
  ])('%s: %s', async ([, pipeline], context) => {
    if (pipeline.includes('/dev/full')) needsLinux(context, 'there is no /dev/full elsewhere')
    const { url, directory, kill, ended, output, errors } = await runInShell(pipeline)
    const before = await sizeOf(directory)
    for (let round = 0; round < 100; round++) await ask(url, 'GET', `/nowhere-${round}`)
    expect((await sizeOf(directory)) - before).toBeLessThan(10_000)
    expect(await upload(`${url}/upload`, { 'a.txt': 'hello' })).toMatchObject({ status: 200 })
    if (pipeline.includes('head')) {
      expect(output().split('\n')).toHaveLength(2)
      expect(JSON.parse(output())).toMatchObject({ url })
    }
    await kill('SIGTERM')
    const [code] = await ended
    if (!pipeline.includes('|')) expect(code).toBe(0)
    expect(errors()).toBe('')
  })
})
