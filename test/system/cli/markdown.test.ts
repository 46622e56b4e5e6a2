import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'

const PREFIX = 'https://img.example'
const CONFIG = {
  providers: { local: { Default: { directory: 'stored', urlPrefix: PREFIX } } },
  keyTemplate: '{filename}{extname}',
}

/** A folder with a configuration and these files; a picture where no text is given. */
async function makeNotes(files: Record<string, string | Buffer | undefined>): Promise<string> {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(CONFIG))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content ?? makePicture())
  }
  return cwd
}

const stored = (cwd: string) => readdir(join(cwd, 'stored')).catch(() => [])

it('a vault of thousands of notes is worked through with a bar', { timeout: 120_000 }, async context => {
  needs(context, 'python3', 'python3')
  const notes = Array.from({ length: 5000 }, (_, index) => [
    `vault/${index % 50}/${index}.md`,
    index % 25 === 0 ? `# ${index}\n\n![[${index}.png]]\n` : `# ${index}\n\nText\n`,
  ])
  const pictures = Array.from({ length: 200 }, (_, index) => [`vault/img/${index * 25}.png`, undefined])
  const cwd = await makeNotes(Object.fromEntries([...notes, ...pictures]))
  const command = [
    'env',
    'TERM=xterm',
    `XDG_DATA_HOME=${cwd}`,
    process.execPath,
    BIN,
    'markdown',
    '-c',
    'upload-server.json',
    'vault',
  ]
  const { exitCode, stdout } = await runOnTerminal(command, [], cwd)
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: expect.stringContaining('200 links in 200 of 5000 notes changed.'),
  })
  expect(stdout).toMatch(/█+░+ \d+ of 5000 notes/)
  expect(await stored(cwd)).toHaveLength(200)
})
