import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { needs } from '../../helpers/needs.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'

const ask = (cwd: string, steps: [wanted: string, answer: string][], args: string[] = []) =>
  runBuiltOnTerminal(['init', '-c', 'x.json', ...args], steps, cwd)

describe('init --add', () => {
  it('asks for the destination alone, and for a name if the first one is in use', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const local = ['--provider', 'local', '--set', 'directory=pictures', '--set', 'serve=true', '--name', 'a']
    await runCli(['init', '--yes', '-c', 'x.json', ...local], { cwd })
    const { exitCode, stdout } = await ask(
      cwd,
      [
        ['Where should files be stored?', '\r'],
        ['name: Name of the new destination. local/a exists already.', 'b\r'],
        ['Change an option?', '\r'],
      ],
      ['--add', ...local],
    )
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    expect(stdout).not.toContain('Who uploads')
    expect(await readFile(join(cwd, 'x.json'), 'utf8')).toContain('"b": {')
  })
})

describe('init', () => {
  it('leaves nothing where the disk is full, and says so', async context => {
    const cwd = await makeDirectory()
    const disk = join(cwd, 'disk')
    await mountSmall(context, disk, '64k')
    await writeFile(join(disk, 'filler'), Buffer.alloc(1 << 20)).catch(() => {})
    const { code, stderr } = await runCli(['init', '--yes', '-c', 'disk/x.json', '--set', 'directory=a'], {
      cwd,
    })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `Could not write ${join(disk, 'x.json')}: the disk is full. Choose another file with --config.\n`,
    })
    expect(await readdir(disk)).toEqual(['filler'])
  })

  it('asks for destination, options and clients, and keeps the other answers when one was wrong', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'file'), 'instead of a folder')
    const { exitCode, stdout } = await ask(cwd, [
      ['Where should files be stored?', 'folder'],
      ['2 matches', '\r'],
      ['directory: ', ' \r'],
      ['A value is required.', '\u0015file/below\r'],
      ['Change an option?', '\r'],
      ['Who uploads', '\u001b[B\r'],
      ['host: ', '\r'],
      ['port: ', '38080\r'],
      ['publicUrl: ', 'http://192.0.2.7:38080/\r'],
      ['How should stored files be named', '\u001b[B\r'],
      ['The configuration was not saved.', ''],
      ['Change an option?', '\u001b[B\u001b[B\u001b[B\r'],
      ['directory: Folder', `"${join(cwd, 'my pictures')}" \r`],
      ['Change an option?', '\r'],
    ])
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    expect(stdout).toContain('FAILED  local/Default')
    expect(stdout).toContain('ok      local/Default: stored, read in its folder')
    expect(stdout).toContain('upload-server --config x.json')
    const output = stdout.replaceAll('\r', '')
    // An editor runs it in another folder.
    expect(output).toMatch(/Typora +In Preferences.*\n +upload-server upload --config \/\S+\/x\.json\n/)
    expect(output).toContain('http://127.0.0.1:38080/upload\n')
    expect(output).toContain('"piclist.uploadAPIUrl": "http://127.0.0.1:38080/upload?status=200"\n')
    expect(output).toContain('Remote     http://192.0.2.7:38080/upload?key=KEY\n')
    expect(JSON.parse(await readFile(join(cwd, 'x.json'), 'utf8'))).toEqual({
      server: {
        host: '0.0.0.0',
        port: 38080,
        publicUrl: 'http://192.0.2.7:38080/',
        key: expect.stringMatching(/^[\w-]{32}$/),
      },
      keyTemplate: '{path}/{filename}-{sha256-8}{extname}',
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'my pictures'), serve: true } } },
    })
  })

  it('asks until the provider accepts the options', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const { exitCode, stdout } = await ask(
      cwd,
      [
        ['sxcu: ', '\r'],
        ['url: ', '\r'],
        ['Set "url", or set', ''],
        ['Change an option?', '\r'],
        ['url: URL', 'http://127.0.0.1:9/\r'],
        ['Change an option?', '\r'],
        ['Who uploads', '\r'],
        ['port: ', '\r'],
        ['How should stored files be named', '\r'],
        ['Change an option?', '\u001b[B\r'],
      ],
      ['--provider', 'http'],
    )
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    expect(JSON.parse(await readFile(join(cwd, 'x.json'), 'utf8'))).toEqual({
      default: 'http/Default',
      providers: { http: { Default: { url: 'http://127.0.0.1:9/' } } },
    })
  })

  it('can be answered with Enter alone', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const { exitCode } = await ask(cwd, [
      ['Where should files be stored?', '\r'],
      ['directory: ', '\r'],
      ['Change an option?', '\r'],
      ['Who uploads', '\r'],
      ['port: ', '\r'],
      ['How should stored files be named', '\r'],
    ])
    expect(exitCode).toBe(0)
    expect(JSON.parse(await readFile(join(cwd, 'x.json'), 'utf8'))).toEqual({
      default: 'local/Default',
      providers: { local: { Default: { directory: join(cwd, 'upload-server/files'), serve: true } } },
    })
  })

  it('saves nothing after Ctrl-C', async context => {
    needs(context, 'python3', 'python3')
    const cwd = await makeDirectory()
    const { exitCode, stdout } = await ask(cwd, [['Where should files be stored?', '\u0003']])
    expect({ exitCode, stdout }).toEqual({
      exitCode: 1,
      stdout: expect.stringContaining('Nothing was saved.'),
    })
    expect(await readdir(cwd)).toEqual([])
  })
})
