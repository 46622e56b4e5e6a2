import { expect, it } from 'vitest'
import { needs, needsRoot } from '../../helpers/needs.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { BIN } from '../../helpers/spawn-server.ts'

it('a user ID without an account and without HOME has the root as its home directory', async context => {
  needsRoot(context, 'it changes the user')
  needs(context, 'setpriv', 'util-linux')
  // The capability lets it read the folder of this project, whoever owns that.
  const as = [
    '--reuid',
    '54321',
    '--clear-groups',
    '--inh-caps',
    '+dac_override',
    '--ambient-caps',
    '+dac_override',
  ]
  const args = [...as, 'env', '-i', process.execPath, BIN, 'config', 'validate']
  expect(await runProgram('setpriv', args, { cwd: '/' })).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('The default configuration is valid'),
  })
})
