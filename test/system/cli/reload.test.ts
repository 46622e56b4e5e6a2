import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { BIN } from '../../helpers/spawn-server.ts'

describe('SIGHUP', () => {
  it('ends the server when it comes from a terminal that was closed', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const script = [
      'import os, pty, sys',
      'pid, terminal = pty.fork()',
      'if pid == 0: os.execv(sys.argv[1], sys.argv[1:])',
      'seen = b""',
      'while b"Local:" not in seen: seen += os.read(terminal, 4096)',
      'os.close(terminal)',
      'print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) # minus the number of the signal',
    ].join('\n')
    const args = ['-c', script, process.execPath, BIN, '--port', '0']
    expect(await runProgram('python3', args, { cwd })).toMatchObject({ stdout: '-1\n', stderr: '' })
  })
})
