import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { startGate } from '../../helpers/gate.ts'
import { needs } from '../../helpers/needs.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'

const PREFIX = 'https://img.example'

/** A working directory with two destinations that keep names, and some files. */
async function makePlace(extra: object = {}): Promise<string> {
  const cwd = await makeDirectory()
  const at = (name: string) => ({ directory: name, urlPrefix: `${PREFIX}/${name}` })
  const config = {
    default: 'local/one',
    providers: { local: { one: at('one'), two: at('two') } },
    keyTemplate: '{filename}{extname}',
    ...extra,
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  for (const name of ['a.txt', 'b.txt', 'c d.txt']) await writeFile(join(cwd, name), `content of ${name}`)
  return cwd
}

describe('what upload cannot store', () => {
  it.for([
    ['cat x |', ''],
    ['', '< x'],
  ])('on a terminal, %j is not ignored in favour of the clipboard', async ([before, after], context) => {
    needs(context, 'python3', 'python3')
    const cwd = await makePlace()
    await writeFile(join(cwd, 'x'), 'x')
    const command = `${before} HOME="$PWD" "${process.execPath}" "${BIN}" upload ${after}`
    const { exitCode, stdout } = await runOnTerminal(['sh', '-c', command], [], cwd)
    expect(stdout).toContain('add "-": upload-server upload - --name image.png')
    expect(exitCode).toBe(2)
  })
})

describe('Ctrl-C', () => {
  it('ends it on a terminal, too, where a line says what goes on', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makePlace()
    const gate = await startGate()
    const { exitCode, stdout } = await runOnTerminal(
      ['env', 'TERM=xterm', `XDG_DATA_HOME=${cwd}`, process.execPath, BIN, 'upload', gate.url],
      [[`Uploading ${gate.url}`, '\u0003']],
      cwd,
    )
    expect(stdout).toContain(`${gate.url}: the upload was interrupted`)
    expect(exitCode).toBe(130)
  })
})
