import { expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { list, post } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { needs } from '../../helpers/needs.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'

it('attack: what a request names moves the cursor of the terminal that shows the log', async context => {
  needs(context, 'python3', 'python3')
  const directory = await makeDirectory()
  const port = await findFreePorts()
  const shown = runBuiltOnTerminal(
    ['--port', String(port)],
    [
      ['Local', ''],
      ['evil', '\u0003'],
    ],
    directory,
  )
  const name = '\u001b[2J\u001b]0;evil\u0007\u009b2J\u202e\n{"level":"fatal"}'
  const send = () => post(`http://127.0.0.1:${port}/upload`, list(`/${name}`))
  expect((await eventually(send)).status).toBe(422)
  const { exitCode, stdout } = await shown
  expect(exitCode).toBe(0)
  expect(stdout).toContain('evil')
  expect(stdout.replace(/\u001b\[\d*m/g, '')).not.toMatch(
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202e]/,
  )
  expect(stdout).not.toMatch(/^\{"level":"fatal"/m)
})
