import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { copyText, type Desktop, notify } from '../../../src/clipboard/desktop.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { leaveOutOnWindows, needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { startX11 } from '../../servers/display.ts'

/** A PATH with programs of these names alone, each of which writes down its input, its arguments and its texts. */
async function makeDesktop(names: readonly string[], script = '') {
  const folder = await makeDirectory()
  for (const name of names) {
    const file = join(folder, name)
    const print = `printf '%s\\0' "$@" > '${file}.args'; printf '%s|%s' "$UPLOAD_NOTICE_TITLE" "$UPLOAD_NOTICE_BODY" > '${file}.env'`
    await writeFile(file, `#!/bin/sh\n${print}\n/bin/cat > '${file}.input'\n${script}\n`)
    await chmod(file, 0o755)
  }
  const read = (name: string) => readFile(join(folder, name))
  const argumentsOf = async (name: string) => (await read(`${name}.args`)).toString().split('\0').slice(0, -1)
  return { folder, read, argumentsOf }
}

const LINUX = { DISPLAY: ':9', WAYLAND_DISPLAY: 'wayland-9' }
const TEXT = 'https://img.example/ä.png\n![a](b)'

describe('a text is copied', () => {
  it.each<[string, string[], Desktop['platform'], object, string[]]>([
    ['wl-copy', ['wl-copy', 'xclip', 'xsel'], 'linux', LINUX, []],
    ['xclip', ['xclip', 'xsel'], 'linux', LINUX, ['-selection', 'clipboard', '-in']],
    ['xsel', ['xsel'], 'linux', { DISPLAY: ':9' }, ['--clipboard', '--input']],
    ['pbcopy', ['pbcopy'], 'darwin', {}, []],
  ])('with %s of %j on %s', async (used, installed, platform, env, args) => {
    const { folder, read, argumentsOf } = await makeDesktop(installed)
    await copyText(TEXT, { platform, env: { ...env, PATH: folder } })
    expect((await read(`${used}.input`)).toString()).toBe(TEXT)
    expect(await argumentsOf(used)).toEqual(args.length > 0 ? args : [''])
  })

  it.each([
    ['windows', 'win32', {}],
    ['WSL', 'linux', { WSL_DISTRO_NAME: 'Debian' }],
  ] as const)('with clip.exe on %s, in an encoding that it reads', async (_, platform, env) => {
    const { folder, read } = await makeDesktop(['clip.exe'])
    await copyText('https://img.example/a.png', { platform, env: { ...env, PATH: folder } })
    expect((await read('clip.exe.input')).toString()).toBe('https://img.example/a.png')
    await copyText(TEXT, { platform, env: { ...env, PATH: folder } })
    expect((await read('clip.exe.input')).toString('utf16le')).toBe(TEXT)
  })

  it('by none that is missing, fails or needs a display, which is said', async () => {
    const { folder } = await makeDesktop(['wl-copy'], 'echo no display >&2; exit 1')
    const at = (env: object): Desktop => ({ platform: 'linux', env: { ...env, PATH: folder } })
    await expect(copyText(TEXT, at(LINUX))).rejects.toThrow(
      /^"wl-copy" failed: exit code 1: no display; "xclip" is not installed.*; "xsel" is not installed/,
    )
    await expect(copyText(TEXT, at({}))).rejects.toThrow('neither DISPLAY nor WAYLAND_DISPLAY is set')
  })
})

describe('attack: a file name that is code, markup or an option is shown in a notification', () => {
  const BODY = `--x"; $(touch /tmp/x) <b>&'`

  it.each<[string, Desktop['platform'], object, (title: string) => string[]]>([
    [
      'notify-send',
      'linux',
      {},
      title => ['--app-name=upload-server', '--', title, `--x"; $(touch /tmp/x) &lt;b&gt;&amp;'`],
    ],
    ['osascript', 'darwin', {}, title => ['-', title, BODY]],
  ])('%s gets it as an argument', async (program, platform, env, args) => {
    const { folder, argumentsOf } = await makeDesktop([program])
    await notify('-t', BODY, { platform, env: { ...env, PATH: folder } })
    expect(await argumentsOf(program)).toEqual(args('-t'))
  })

  it('powershell.exe gets it in its environment', async () => {
    const { folder, read, argumentsOf } = await makeDesktop(['powershell.exe'])
    await notify('-t', BODY, { platform: 'win32', env: { PATH: folder } })
    expect((await read('powershell.exe.env')).toString()).toBe(`-t|${BODY}`)
    expect((await argumentsOf('powershell.exe')).join('\n')).not.toContain('touch')
  })
})

describe('upload', () => {
  async function upload(env: Record<string, string>, ...args: string[]) {
    const cwd = await makeDirectory()
    const providers = { local: { Default: { directory: 'stored', urlPrefix: 'https://img.example' } } }
    await writeFile(join(cwd, 'x.json'), JSON.stringify({ providers, keyTemplate: '{filename}{extname}' }))
    for (const name of ['a.png', 'b.png']) await writeFile(join(cwd, name), makePicture())
    return runCli(['upload', '-q', '-c', 'x.json', ...args], { cwd, env })
  }

  it('--copy copies the links as they are printed, --notify shows what became of them', async context => {
    leaveOutOnWindows(context, 'it runs no scripts')
    const { folder, read, argumentsOf } = await makeDesktop(['wl-copy', 'notify-send', 'pbcopy', 'osascript'])
    const env = { PATH: folder, WAYLAND_DISPLAY: 'wayland-9' }
    const args = ['--copy', '--notify', '--format', 'markdown']
    const { code, stdout, stderr } = await upload(env, ...args, 'a.png', 'gone.png', 'b.png')
    expect(code).toBe(3)
    const copied = process.platform === 'darwin' ? 'pbcopy' : 'wl-copy'
    const notified = process.platform === 'darwin' ? 'osascript' : 'notify-send'
    expect((await read(`${copied}.input`)).toString()).toBe(stdout.trimEnd())
    expect((await argumentsOf(notified)).slice(-2)).toEqual([
      '1 of 3 uploads failed',
      'gone.png: the file does not exist',
    ])
    expect(stderr).toContain('Try again: upload-server upload')
    expect(stderr).toContain('--copy --notify')
    await upload(env, ...args, '--path', '../x', 'a.png')
    expect((await argumentsOf(notified)).slice(-2)[0]).toBe('The upload failed')
  })

  it('that can neither copy nor notify succeeds with a warning', async context => {
    leaveOutOnWindows(context, 'its desktop is there')
    const { code, stderr } = await upload({ PATH: '/nowhere', DISPLAY: '' }, '--copy', '--notify', 'a.png')
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^Warning: The links were not copied: .*\.\nWarning: No notification was shown: .*\.\n$/,
    )
  })

  it('--copy really copies on X11', async context => {
    needs(context, 'xclip', 'xclip')
    needs(context, 'Xvfb', 'xvfb')
    const display = await startX11()
    onTestFinished(() => display.stop())
    const env = display.env as Record<string, string>
    const { code, stdout } = await upload(env, '--copy', 'a.png')
    expect(code).toBe(0)
    const pasted = await runProgram('xclip', ['-selection', 'clipboard', '-o'], { env })
    expect(pasted.stdout).toBe(stdout.trimEnd())
  })
})
