import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runBuilt, runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { BIN } from '../../helpers/spawn-server.ts'

const CONFIG = {
  default: 'local/blog',
  providers: {
    local: { blog: { directory: 'a', serve: true }, notes: { directory: 'b', serve: true } },
    webdav: { blog: { url: 'http://127.0.0.1:1/', urlPrefix: 'https://x.example' } },
  },
}

async function makePlace(): Promise<string> {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(CONFIG))
  return cwd
}

/** What is offered behind these words, the last of them being typed. */
async function offered(words: string[], cwd: string, run = runCli): Promise<string[]> {
  const { code, stdout, stderr } = await run(['complete', '--', ...words], { cwd })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
    .split('\n')
    .filter(Boolean)
    .map(line => line.replace(/\t.*/, ''))
}

describe('the tab key', () => {
  it.each([
    ['up', 'upload'],
    ['--strict', '--strict-port'],
    ['config ', 'show validate schema import help'],
    ['completion ', 'bash zsh fish powershell'],
    ['upload --format ', 'url markdown html bbcode json ndjson'],
    ['upload --github-s', '--github-summary'],
    ['upload --strip', '--strip-components'],
    ['mcp --root ', ':folders'],
    ['upload a.png --picbed ', 'local webdav'],
    ['upload --destination local/n', 'local/notes'],
    ['upload --config-name ', 'blog notes'],
    ['upload --key x --name ', ''],
    ['upload ', ':files'],
    ['serve --config ', ':files'],
    ['--log-level w', 'warn'],
    ['check web', 'webdav/blog'],
    ['history --destination local/n', 'local/notes'],
    ['rm --destination local/n', 'local/notes'],
    ['check --config absent.json ', ''],
  ])('%j: %j', async (words, expected) => {
    expect((await offered(words.split(' '), await makePlace())).join(' ')).toBe(expected)
  })

  it('of the built program offers every command at first, but the one that it asks', async () => {
    const commands = await offered([''], await makePlace(), runBuilt)
    expect(commands).toEqual(expect.arrayContaining(['serve', 'upload', 'init', 'check', 'completion']))
    expect(commands).not.toContain('complete')
  })
})

describe('in a real shell', () => {
  /** A folder for the PATH in which only completion is the real program; whatever else is run says what it got. */
  async function install(cwd: string): Promise<string> {
    const bin = join(cwd, 'bin')
    await mkdir(bin)
    const script = `#!/bin/sh\ncase $1 in complet*) exec '${process.execPath}' '${BIN}' "$@";; esac\necho "ran:$*:"\n`
    await writeFile(join(bin, 'upload-server'), script)
    await chmod(join(bin, 'upload-server'), 0o755)
    return bin
  }

  it.for([
    { shell: 'bash', command: ['bash', '--norc', '-i'], before: '' },
    { shell: 'zsh', command: ['zsh', '-f', '-i'], before: 'autoload -Uz compinit && compinit -u -D; ' },
  ])('$shell completes commands, values and file names', async ({ shell, command, before }, context) => {
    for (const program of ['python3', shell]) needs(context, program, program)
    const cwd = await makePlace()
    const bin = await install(cwd)
    await writeFile(join(cwd, 'picture-one.png'), '')
    const env = [`PATH=${bin}:${process.env['PATH']}`, `UPLOAD_SERVER_CONFIG=${cwd}/upload-server.json`]
    const result = await runOnTerminal(
      ['env', 'TERM=xterm', ...env, ...command],
      [
        ['', `${before}eval "$(upload-server completion ${shell})"; PS1='rea''dy> '\n`],
        ['ready> ', 'upload-server uplo\t--format bb\t--config-name no\tpicture-o\t\n'],
        ['ran:upload --format bbcode --config-name notes picture-one.png', 'exit\n'],
      ],
      cwd,
    )
    expect(result.stdout).toContain('ran:upload --format bbcode --config-name notes picture-one.png')
  })

  it('fish completes commands, values and file names', async context => {
    needs(context, 'fish', 'fish')
    const cwd = await makePlace()
    const bin = await install(cwd)
    await writeFile(join(cwd, 'picture-one.png'), '')
    const ask = async (line: string) => {
      const script = `set -x PATH ${bin} $PATH; set -x UPLOAD_SERVER_CONFIG upload-server.json; upload-server completion fish | source; complete -C "${line}"`
      const { stdout } = await runProgram('fish', ['--no-config', '-c', script], { cwd })
      return stdout.split('\n').filter(Boolean)
    }
    expect(await ask('upload-server uplo')).toEqual([
      'upload\tupload files, directly or through a running server, and print one link per line',
    ])
    expect(await ask('upload-server upload --format bb')).toEqual(['bbcode'])
    expect(await ask('upload-server upload pict')).toEqual(['picture-one.png'])
  })
})
