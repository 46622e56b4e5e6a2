import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { makeDirectory } from './helpers/directory.ts'
import { needs } from './helpers/needs.ts'
import { runProgram } from './helpers/run-program.ts'

it('systemd takes the unit of docs/service.md', async context => {
  needs(context, 'systemd-analyze', 'systemd')
  const unit = 'docs/examples/upload-server.service'
  const runtime = `XDG_RUNTIME_DIR=${await makeDirectory()}`
  const args = [runtime, 'systemd-analyze', '--user', 'verify', '--man=no', unit]
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
