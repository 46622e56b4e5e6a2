import { chmod, lstat, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadProviders } from '../../src/providers/registry.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { runCli } from './run-cli.ts'

const LOCAL = ['--provider', 'local', '--set', 'directory=pictures', '--set', 'serve=true']

const init = (cwd: string, ...args: string[]) => runCli(['init', ...args], { cwd })

describe('init --yes', () => {
  it('tests the configuration and saves it with mode 0600', async () => {
    const cwd = await makeDirectory()
    const file = join(cwd, '.config/upload-server/config.json')
    const { code, stdout, stderr } = await init(cwd, '--yes', ...LOCAL, '--key', 'a${b')
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${file}\n` })
    expect(stderr).toContain('ok      local/Default: stored, read in its folder, removed\n')
    const before = await readFile(file, 'utf8')
    expect(JSON.parse(before)).toEqual({
      server: { key: 'a$${b' },
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'pictures'), serve: true } } },
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(join(cwd, '.config/upload-server'))).toEqual(['config.json'])
    expect((await runCli(['config', 'validate'], { cwd })).stdout).toContain(`${file} is valid.`)

    const again = await init(cwd, '--yes', ...LOCAL)
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('already exists and was not changed'),
    })
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  it('needs no options: files are stored in the data directory and served from there', async () => {
    const cwd = await makeDirectory()
    const { code, stderr } = await init(cwd, '--yes', '-c', 'x.json')
    expect(code).toBe(0)
    expect(JSON.parse(await readFile(join(cwd, 'x.json'), 'utf8'))).toEqual({
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'upload-server/files'), serve: true } } },
    })
    const editors = ['Typora ', 'Obsidian ', 'VS Code ', 'PicGo(app)', 'http://127.0.0.1:36677/upload']
    for (const words of [...editors, 'only work on this machine']) expect(stderr).toContain(words)
  })

  it.each<[string, string[], string]>([
    ['an unknown provider', ['--provider', 'nope'], '"nope" is not a provider. Available: aliyun, azure,'],
    ['a misspelt provider', ['--provider', 'githb'], '"githb" is not a provider. Did you mean "github"?'],
    ['an unknown option', ['--set', 'dir=x'], '--set dir: not an option of local. Available: directory,'],
    ['a missing option', ['--provider', 'sftp'], 'providers.sftp.Default.host: is missing'],
    ['an invalid value', [...LOCAL, '--set', 'fileMode=7'], 'providers.local.Default.fileMode'],
    ['a failed test', ['--set', 'directory=/dev/null/x'], 'FAILED  local/Default'],
  ])('reports %s, and saves nothing', async (_, args, message) => {
    const cwd = await makeDirectory()
    const { code, stdout, stderr } = await init(cwd, '--yes', '--config', 'x.json', ...args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
    expect(await readdir(cwd)).not.toContain('x.json')
    expect((await readdir(cwd)).filter(name => name.endsWith('.new'))).toEqual([])
  })

  it('with --no-check saves what was not tested', async () => {
    const cwd = await makeDirectory()
    const saved = await init(cwd, '--yes', '-c', 'x.json', '--set', 'directory=/dev/null/x', '--no-check')
    expect(saved).toMatchObject({ code: 0, stdout: `${join(cwd, 'x.json')}\n` })
  })
})

describe('init --add', () => {
  const OLD =
    '{\n\t// mine\n\t"providers": {\n\t\t"local": { "a": { "directory": "a", "serve": true } } // the first\n\t},\n\t"server": { "port": 1 },\n}\n'
  const place = async (text = OLD) => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'real.json'), text)
    await chmod(join(cwd, 'real.json'), 0o640)
    await symlink('real.json', join(cwd, 'x.json'))
    return cwd
  }
  const add = (cwd: string, ...args: string[]) =>
    init(cwd, '--add', '--yes', '-c', 'x.json', ...LOCAL, ...args)

  it('keeps comments, order, permissions, the symlink, and which destination is the default', async () => {
    const cwd = await place()
    const { code, stderr } = await add(cwd, '--name', 'b')
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stderr).toContain('upload-server upload --config x.json --destination local/b FILE')
    const text = await readFile(join(cwd, 'real.json'), 'utf8')
    expect(text).toMatch(
      /^\{\n\t\/\/ mine\n\t"providers": .+\/\/ the first\n.+"server": \{\s+"port": 1\s+\},/s,
    )
    const shown = JSON.parse((await runCli(['config', 'show', '-c', 'x.json'], { cwd })).stdout)
    expect(shown).toMatchObject({
      default: 'local/a',
      providers: { local: { a: {}, b: { directory: join(cwd, 'pictures') } } },
    })
    expect((await stat(join(cwd, 'real.json'))).mode & 0o777).toBe(0o640)
    expect((await lstat(join(cwd, 'x.json'))).isSymbolicLink()).toBe(true)
    expect((await readdir(cwd)).sort()).toEqual(['pictures', 'real.json', 'x.json'])
  })

  it.each<[string, string, string[], string]>([
    ['a name that is in use', OLD, ['--name', 'a'], 'local/a is already in'],
    ['what is not JSON', '{', [], 'x.json is not valid JSON: close brace expected'],
    [
      'a name that is set twice',
      '{ "server": 1, "server": 1 }',
      [],
      'x.json is ambiguous: "server" is set twice',
    ],
    ['a file of PicGo', '{ "picBed": {} }', [], 'Convert it first: upload-server config import'],
    ['no object', '[]', [], 'x.json must contain an object.'],
    ['other errors', '{ "sever": {} }', [], 'sever: is not an option'],
    ['an upload key', OLD, ['--key', 'x'], '--add cannot be used with --key.'],
    ['a file that does not exist', OLD, ['-c', 'y.json'], 'y.json: no such file'],
  ])('refuses %s, and changes nothing', async (_, text, args, message) => {
    const cwd = await place(text)
    const { code, stderr } = await add(cwd, ...args)
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) })
    expect(await readFile(join(cwd, 'real.json'), 'utf8')).toBe(text)
    expect((await readdir(cwd)).sort()).toEqual(['real.json', 'x.json'])
  })
})

it('asks no questions without a terminal', async () => {
  expect(await init(await makeDirectory())).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringContaining('needs a terminal. In a script, run: upload-server init --yes'),
  })
})

it('offers every provider, and asks only for existing options', async () => {
  for (const { type, about, config } of await loadProviders()) {
    const choices = about?.choices ?? []
    expect(choices, type).not.toEqual([])
    const names = choices.flatMap(({ options = {}, asks }) => [
      ...Object.keys(options),
      ...asks.map(name => name.replace('?', '')),
    ])
    expect(Object.keys(config.shape)).toEqual(expect.arrayContaining(names))
  }
})
