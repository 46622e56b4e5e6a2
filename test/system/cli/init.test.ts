import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { needs } from '../../helpers/needs.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'

type Steps = [wanted: string, answer: string][]

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

it('leaves nothing where the disk is full, and says so', async context => {
  const disk = join(cwd, 'disk')
  await mountSmall(context, disk, '64k')
  await writeFile(join(disk, 'filler'), Buffer.alloc(1 << 20)).catch(() => {})
  const args = ['init', '--yes', '-c', 'disk/x.json', '--set', 'directory=a']
  expect(await runCli(args, { cwd })).toMatchObject({
    code: 1,
    stderr: `Could not write ${join(disk, 'x.json')}: the disk is full. Choose another file with --config.\n`,
  })
  expect(await readdir(disk)).toEqual(['filler'])
})

describe('on a terminal', () => {
  beforeEach(context => needs(context, 'python3', 'python3'))

  /** Answers the questions. @returns what was shown, and the configuration */
  async function ask(steps: Steps, args: string[] = []) {
    const { exitCode, stdout } = await runBuiltOnTerminal(['init', '-c', 'x.json', ...args], steps, cwd)
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    return { stdout, config: JSON.parse(await readFile(join(cwd, 'x.json'), 'utf8')) }
  }

  it('--add asks for the destination alone, and for a name if the first one is in use', async () => {
    const local = ['--provider', 'local', '--set', 'directory=pictures', '--set', 'serve=true', '--name', 'a']
    await runCli(['init', '--yes', '-c', 'x.json', ...local], { cwd })
    const steps: Steps = [
      ['Where should files be stored?', '\r'],
      ['name: Name of the new destination. local/a exists already.', 'b\r'],
      ['Change an option?', '\r'],
    ]
    const { stdout, config } = await ask(steps, ['--add', ...local])
    expect(stdout).not.toContain('Who uploads')
    expect(Object.keys(config.providers.local)).toEqual(['a', 'b'])
  })

  it('asks for destination, options and clients, and keeps the other answers when one was wrong', async () => {
    await writeFile(join(cwd, 'file'), 'instead of a folder')
    const { stdout, config } = await ask([
      ['Where should files be stored?', 'folder'],
      ['2 matches', '\r'],
      ['directory: ', ' \r'],
      ['A value is required.', '\u0015file/below\r'],
      ['Change an option?', '\r'],
      ['Who uploads', '\u001b[B\r'],
      ['port: ', '38080\r'],
      ['publicUrl: ', 'http://192.0.2.7:38080/\r'],
      ['The configuration was not saved.', ''],
      ['Change an option?', '\u001b[B\u001b[B\u001b[B\r'],
      ['directory: Folder', `"${join(cwd, 'my pictures')}" \r`],
      ['Change an option?', '\r'],
    ])
    const output = stdout.replaceAll('\r', '')
    for (const shown of [
      'FAILED  local/Default',
      'ok      local/Default: stored, read in its folder',
      'upload-server --config x.json',
      'http://127.0.0.1:38080/upload\n',
      '"piclist.uploadAPIUrl": "http://127.0.0.1:38080/upload?status=200"\n',
      'Remote     http://192.0.2.7:38080/upload?key=KEY\n',
    ])
      expect(output).toContain(shown)
    // An editor runs it in another folder.
    expect(output).toMatch(/Typora +In Preferences.*\n +upload-server upload --config \/\S+\/x\.json\n/)
    const server = { host: '0.0.0.0', port: 38080, publicUrl: 'http://192.0.2.7:38080/' }
    expect(config).toEqual({
      server: { ...server, key: expect.stringMatching(/^[\w-]{32}$/) },
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'my pictures'), serve: true } } },
    })
  })

  it('asks until the provider accepts the options, which may be one of a plugin', async () => {
    const code = `export default ({ defineProvider, z }) => defineProvider({
      type: 'echo',
      config: z.object({ word: z.string().describe('Any word.') }),
      validate: ({ word }) => (word === 'right' ? undefined : '"word" is wrong.'),
      open: () => ({ put: async () => ({ url: 'https://x.example' }) }),
    })`
    await writeFile(join(cwd, 'echo.mjs'), code)
    const steps: Steps = [
      ['word: Any word.', 'odd\r'],
      ['"word" is wrong.', ''],
      ['Change an option?', '\r'],
      ['word: Any word.', 'right\r'],
      ['Change an option?', '\r'],
      ['Who uploads', '\r'],
      ['port: ', '\r'],
      ['Change an option?', '\u001b[B\r'],
    ]
    const { config } = await ask(steps, ['--plugin', './echo.mjs', '--provider', 'echo'])
    expect(config).toEqual({
      plugins: [join(cwd, 'echo.mjs')],
      default: 'echo/Default',
      providers: { echo: { Default: { word: 'right' } } },
    })
  })

  it('can be answered with Enter alone', async () => {
    const { config } = await ask([
      ['Where should files be stored?', '\r'],
      ['directory: ', '\r'],
      ['Change an option?', '\r'],
      ['Who uploads', '\r'],
      ['port: ', '\r'],
    ])
    expect(config).toEqual({
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'upload-server/files'), serve: true } } },
    })
  })

  it('saves nothing after Ctrl-C', async () => {
    const steps: Steps = [['Where should files be stored?', '\u0003']]
    const { exitCode, stdout } = await runBuiltOnTerminal(['init', '-c', 'x.json'], steps, cwd)
    expect({ exitCode, stdout }).toEqual({
      exitCode: 1,
      stdout: expect.stringContaining('Nothing was saved.'),
    })
    expect(await readdir(cwd)).toEqual([])
  })
})
