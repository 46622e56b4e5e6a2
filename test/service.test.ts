import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { makeDirectory } from './helpers/directory.ts'
import { needs } from './helpers/needs.ts'
import { runProgram } from './helpers/run-program.ts'

it.for([
  ['--user', 'upload-server.service'],
  ['--system', 'upload-server-socket.service'],
] as const)('systemd takes the %s unit %s', async ([manager, unit], context) => {
  needs(context, 'systemd-analyze', 'systemd')
  const runtime = `XDG_RUNTIME_DIR=${await makeDirectory()}`
  const args = [runtime, 'systemd-analyze', manager, 'verify', '--man=no', `docs/examples/${unit}`]
  expect(await runProgram('env', args)).toEqual({ exitCode: 0, stdout: '', stderr: '' })
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
