import { execFile, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { inOwnGroup, killGroup } from '../../src/flow/run-program.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { leaveOutOnWindows } from '../helpers/needs.ts'

const NO_GROUPS = 'it has no process groups'

it('a program ends with what it started', async context => {
  leaveOutOnWindows(context, NO_GROUPS)
  const child = spawn('sh', ['-c', 'sleep 100; true'], {
    ...inOwnGroup(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  // Both hold the pipe: it is closed once neither lives.
  const closed = new Promise(resolve => child.once('close', (_, signal) => resolve(signal)))
  killGroup(child.pid)
  expect(await closed).toBe('SIGKILL')
  killGroup(child.pid)
  killGroup(undefined)
})

it('on Windows taskkill ends it', async context => {
  leaveOutOnWindows(context, NO_GROUPS)
  expect(inOwnGroup('win32')).toEqual({ detached: false, windowsHide: true })
  const directory = await makeDirectory()
  const said = join(directory, 'said')
  await writeFile(join(directory, 'taskkill'), `#!/bin/sh\necho "$@" >${said}\n`, { mode: 0o755 })
  killGroup(4711, { platform: 'win32', env: { PATH: `${directory}:/bin:/usr/bin` } })
  await expect.poll(() => readFile(said, 'utf8').catch(() => '')).toBe('/pid 4711 /t /f\n')
})

it('on a Windows without taskkill the program itself is ended', async context => {
  leaveOutOnWindows(context, NO_GROUPS)
  const child = spawn('sleep', ['100'], { stdio: 'ignore' })
  const ended = new Promise(resolve => child.once('exit', (_, signal) => resolve(signal)))
  killGroup(child.pid, { platform: 'win32', env: { PATH: await makeDirectory() } })
  expect(await ended).toBe('SIGKILL')
})

it('a program that was started without a free file descriptor ended the process', async context => {
  leaveOutOnWindows(context, 'it has no limit of them')
  const script = `
    import { openSync, closeSync } from 'node:fs'
    import { runProgram } from '${new URL('../../build/flow/run-program.js', import.meta.url)}'
    const open = []
    try { for (;;) open.push(openSync('/dev/null')) } catch {}
    const said = await runProgram(['true'], { env: {}, input: '', signal: new AbortController().signal }).catch(String)
    for (const one of open) closeSync(one)
    await new Promise(setImmediate)
    console.log(said)`
  const args = ['-c', 'ulimit -n 100; exec "$0" --input-type=module -e "$1"', process.execPath, script]
  const { stdout } = await promisify(execFile)('sh', args)
  expect(stdout).toMatch(/can't be started: .*EMFILE/)
})
