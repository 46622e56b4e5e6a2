import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { readBlocks } from '../helpers/documents.ts'
import { needs } from '../helpers/needs.ts'
import { runProgram } from '../helpers/run-program.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'

it.for([
  ['--user', 'upload-server.service'],
  ['--system', 'upload-server-socket.service'],
] as const)('systemd takes the %s unit %s', async ([manager, unit], context) => {
  needs(context, 'systemd-analyze', 'systemd')
  const runtime = `XDG_RUNTIME_DIR=${await makeDirectory()}`
  const args = [runtime, 'systemd-analyze', manager, 'verify', '--man=no', `docs/examples/${unit}`]
  expect(await runProgram('env', args)).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  // systemd gives up after 5 starts in 10 s, which took half a second with the default pause.
  const [, pauseS] = /^RestartSec=(\d+)$/m.exec(await readFile(`docs/examples/${unit}`, 'utf8')) ?? []
  expect(Number(pauseS) * 5).toBeGreaterThan(10)
})

it('the user unit finds a program that npm has installed for a single user', async context => {
  needs(context, 'env', 'coreutils')
  const home = await makeDirectory()
  const unit = await readFile('docs/examples/upload-server.service', 'utf8')
  const [, path = ''] = /^Environment=PATH=(.*)$/m.exec(unit) ?? []
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  const [program = '', ...args] = command.split(' ')
  for (const prefix of ['.local', '.npm-global']) {
    const bin = join(home, prefix, 'bin')
    await mkdir(bin, { recursive: true })
    await writeFile(join(bin, 'upload-server'), `#!/bin/sh\necho ${prefix} "$@"\n`, { mode: 0o755 })
    const env = { PATH: path.replaceAll('%h', home) }
    expect((await runProgram(program, args, { env })).stdout).toBe(`${prefix} --strict-port\n`)
    await rm(bin, { recursive: true })
  }
})

it('the file for launchd is a property list that starts the program', async context => {
  needs(context, 'python3', 'python3')
  const script = 'import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'
  const input = await readFile('docs/examples/upload-server.plist')
  const { stdout, stderr } = await runProgram('python3', ['-c', script], { input })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toMatchObject({
    Label: 'upload-server',
    ProgramArguments: [expect.stringMatching(/upload-server$/), '--strict-port'],
    RunAtLoad: true,
  })
})

it('logrotate with the configuration of docs/guides/operations.md rotates a log that the server goes on writing', async context => {
  needs(context, 'logrotate', 'logrotate')
  const directory = await makeDirectory()
  const log = join(directory, 'upload-server.log')
  const guide = await readFile('docs/guides/operations.md', 'utf8')
  const block = readBlocks(guide).find(({ kind }) => kind === 'text file=upload-server.logrotate')
  const rules = join(directory, 'rules')
  await writeFile(rules, block?.code.replace('/var/log/upload-server.log', log) ?? '', { mode: 0o644 })
  const child = spawn(
    'sh',
    ['-c', 'exec "$0" "$@" >> upload-server.log', process.execPath, BIN, '--port', '0'],
    {
      cwd: directory,
      env: environmentIn(directory),
      stdio: 'ignore',
    },
  )
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const readLog = () => readFile(log, 'utf8').catch(() => '')
  await expect.poll(readLog, { timeout: 15_000 }).toContain('Listening')
  const { exitCode, stderr } = await runProgram('logrotate', [
    '--force',
    '--state',
    join(directory, 'state'),
    rules,
  ])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(gunzipSync(await readFile(`${log}.1.gz`)).toString()).toContain('Listening')
  expect(await readLog()).toBe('')
  child.kill('SIGTERM')
  await ended
  expect(await readLog()).toMatch(/^\{.*"Stopped"\}\n$/s)
}, 30_000)
