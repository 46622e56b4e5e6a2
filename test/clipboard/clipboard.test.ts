import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ClipboardOptions, readClipboard } from '../../src/clipboard/index.ts'
import { EMPTY, failure, NO_REFERENCE, read } from '../helpers/clipboard.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'

const MIB = 1024 * 1024
const PNG = makePicture(16)
const GIF = Buffer.from('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=', 'base64')
/** A new folder, gone after the test, with one stand-in for each foreign program: the body of a shell script. */
async function makePrograms(scripts: Record<string, string>): Promise<string> {
  const folder = await makeDirectory()
  for (const [name, script] of Object.entries(scripts)) {
    const body = `#!/bin/sh\nPATH=/usr/bin:/bin\nhere='${folder}'\n${script}\n`
    await writeFile(join(folder, name), body)
    await chmod(join(folder, name), 0o755)
  }
  return folder
}

/** A stand-in for xclip whose owner offers several types, as browsers and file managers do; xclip itself offers one. */
function offering(types: Record<string, string | Buffer>): string {
  const cases = Object.entries(types).map(
    ([type, bytes]) => `'${type}') echo ${Buffer.from(bytes).toString('base64')} | base64 -d;;`,
  )
  return `case "$4" in TARGETS) printf '%s\\n' TARGETS '${Object.keys(types).join("' '")}';; ${cases.join(' ')} *) exit 1;; esac`
}

async function withXclip(script: string): Promise<NodeJS.ProcessEnv> {
  return { PATH: await makePrograms({ xclip: script }), DISPLAY: ':0' }
}

/** Settles when the process has ended whose number a stand-in has written down. */
async function ended(pidFile: string): Promise<void> {
  const pid = Number(await readFile(pidFile, 'utf8'))
  // Empty too for a process that has ended and was not yet collected by its parent.
  const commandLine = () => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  await expect.poll(commandLine, { timeout: 5000 }).toBe('')
}

describe('two displays', () => {
  it('leaves time for X11 when wl-paste hangs', async () => {
    const PATH = await makePrograms({ 'wl-paste': 'sleep 60', xclip: offering({ 'image/png': PNG }) })
    const env = { PATH, WAYLAND_DISPLAY: 'wayland-0', DISPLAY: ':0' }
    expect(await read(env, { timeoutMs: 2000 })).toMatchObject({ kind: 'image', body: PNG })
  })

  it('names every missing tool', async () => {
    const env = { PATH: await makePrograms({}), WAYLAND_DISPLAY: 'wayland-0', DISPLAY: ':0' }
    const { code, message } = await failure(read(env))
    expect(code).toBe('source_failed')
    expect(message).toContain('install the package "wl-clipboard"')
    expect(message).toContain('install the package "xclip"')
  })

  it('says once what both say', async () => {
    const none = 'echo "target TARGETS not available, No selection" >&2; exit 1'
    const PATH = await makePrograms({ 'wl-paste': none, xclip: none })
    const { message } = await failure(read({ PATH, WAYLAND_DISPLAY: 'wayland-0', DISPLAY: ':0' }))
    expect(message.match(/empty/g)).toHaveLength(1)
  })
})

describe('a clipboard owner with several types', () => {
  const uris = 'copy\nfile:///first.png\nfile:///second.png'
  it.each([
    ['png before jpeg', { 'image/jpeg': 'no', 'image/png': PNG, UTF8_STRING: 'x' }, 'clipboard.png'],
    ['gif before a type of no list', { 'image/x-other': 'no', 'image/gif': GIF }, 'clipboard.gif'],
    ['a type of no list', { 'text/html': '<img>', 'image/x-other': GIF }, 'clipboard.gif'],
    ['a picture before its file', { 'text/uri-list': 'file:///a.png', 'image/png': PNG }, 'clipboard.png'],
    ['the first file of several', { 'x-special/gnome-copied-files': uris, UTF8_STRING: 'x' }, '/first.png'],
    [
      'a file before text',
      { UTF8_STRING: '/text', 'text/uri-list': '# list\r\nfile:///a.png\r\n' },
      '/a.png',
    ],
    ['text behind a list of no files', { UTF8_STRING: '/text', 'text/uri-list': 'mailto:me' }, '/text'],
  ] as [string, Record<string, string | Buffer>, string][])('takes %s', async (_, types, expected) => {
    const content = await read(await withXclip(offering(types)))
    expect(content.kind === 'image' ? content.name : content.kind === 'path' && content.path).toBe(expected)
  })
})

describe('text in the clipboard', () => {
  it.each([
    ['/a.png', { kind: 'path', path: '/a.png' }],
    ['  /a b.png \r\n', { kind: 'path', path: '/a b.png' }],
    ['"/a b.png"', { kind: 'path', path: '/a b.png' }],
    ['/100%25.png', { kind: 'path', path: '/100%25.png' }],
    ['file:///a%20b.png', { kind: 'path', path: '/a b.png' }],
    ['file://localhost/a.png', { kind: 'path', path: '/a.png' }],
    ['HTTP://example.org/a b.png', undefined],
    ['http://example.org/a.png', { kind: 'url', url: new URL('http://example.org/a.png') }],
    ['http://', undefined],
    ['see https://example.org/a.png', undefined],
    ['file://elsewhere/a.png', undefined],
    ['file:///a%2Fb.png', undefined],
    ['file:///a%00.png', undefined],
    ['ftp://example.org/a.png', undefined],
    ['javascript:alert(1)', undefined],
    ['a.png', undefined],
    ['~/a.png', undefined],
    ['C:\\a.png', undefined],
    ['/a.png\n/b.png', undefined],
    ['/a\u001b[31m.png', undefined],
  ])('%j', async (text, expected) => {
    const reading = read(await withXclip(offering({ UTF8_STRING: text })))
    if (expected) expect(await reading).toEqual(expected)
    else expect((await failure(reading)).message).toMatch(NO_REFERENCE)
  })

  it.each(['', ' \r\n'])('of nothing but blanks (%j) is an empty clipboard', async text => {
    expect((await failure(read(await withXclip(offering({ UTF8_STRING: text }))))).message).toMatch(EMPTY)
  })

  it('without end is stopped and no path', async () => {
    const script = `case "$4" in TARGETS) echo UTF8_STRING;; *) exec yes /a;; esac`
    expect((await failure(read(await withXclip(script)))).message).toMatch(NO_REFERENCE)
  })
})

describe('without display or tool', () => {
  it.each([{}, { DISPLAY: '', WAYLAND_DISPLAY: '' }])('says that there is no display (%j)', async env => {
    const { code, message } = await failure(read({ ...env, PATH: process.env['PATH'] }))
    expect(code).toBe('source_failed')
    expect(message).toContain('neither "WAYLAND_DISPLAY" nor "DISPLAY" is set. Run upload-server inside')
  })

  it.each([
    ['linux', { DISPLAY: ':0' }, '"xclip"', 'install the package "xclip"'],
    ['freebsd', { DISPLAY: ':0' }, '"xclip"', 'install the package "xclip"'],
    ['linux', { WAYLAND_DISPLAY: 'wayland-0' }, '"wl-paste"', 'install the package "wl-clipboard"'],
    ['linux', { WSL_DISTRO_NAME: 'Debian' }, '"powershell.exe"', 'add the folder'],
    ['darwin', {}, '"osascript"', 'add "/usr/bin"'],
    ['win32', {}, '"powershell.exe"', 'add the folder'],
  ] as const)('on %s with %j names the missing tool', async (platform, env, tool, remedy) => {
    const PATH = await makePrograms({})
    const { code, message } = await failure(read({ ...env, PATH }, { platform }))
    expect(code).toBe('source_failed')
    expect(message).toContain(tool)
    expect(message).toContain(remedy)
  })

  it('says when the tool may not be run', async () => {
    const PATH = await makePrograms({ xclip: '' })
    await chmod(join(PATH, 'xclip'), 0o644)
    const { message } = await failure(read({ PATH, DISPLAY: ':0' }))
    expect(message).toContain('"xclip" can\'t be run: it is not a program, or is not executable')
  })
})

describe('a tool that misbehaves', () => {
  it('is killed when it hangs, in time for an answer within 2 s', async () => {
    const env = await withXclip('echo $$ > "$here/pid"; exec sleep 60')
    const { code, message } = await failure(readClipboard({ env, platform: 'linux', maxBytes: MIB }))
    expect(code).toBe('source_failed')
    expect(message).toBe(
      'The clipboard did not respond in time, and "xclip" was stopped. Copy the image again.',
    )
    await ended(join(env['PATH'] ?? '', 'pid'))
  })

  it('shares one deadline among all its calls', async () => {
    const env = await withXclip(`sleep 0.4; ${offering({ UTF8_STRING: '/a.png' })}`)
    const { message } = await failure(read(env, { timeoutMs: 600 }))
    expect(message).toContain('did not respond in time')
  })

  it('is killed when it prints a picture without end', async () => {
    const script = `case "$4" in TARGETS) echo image/png;; *) echo $$ > "$here/pid"; exec cat /dev/zero;; esac`
    const env = await withXclip(script)
    expect((await failure(read(env, { maxBytes: MIB }))).code).toBe('too_large')
    await ended(join(env['PATH'] ?? '', 'pid'))
  })

  it('is quoted in one short line without addresses when it fails', async () => {
    const env = await withXclip('yes "see https://example.org/help for help" | head -n 999 >&2; exit 3')
    const { code, message } = await failure(read(env))
    expect(code).toBe('source_failed')
    expect(message).toMatch(/^Could not read the clipboard: "xclip" ended with status 3 \(see … for help see/)
    expect(message).toMatch(/: check that "DISPLAY" and "XAUTHORITY" belong to a running display/)
    expect(message.length).toBeLessThan(500)
    expect(message).not.toContain('\n')
  })

  it('may be killed by somebody else', async () => {
    const { message } = await failure(read(await withXclip('kill -9 $$')))
    expect(message).toContain('"xclip" was killed')
  })
})

describe('an aborted read', () => {
  it('ends with the reason of the signal, and the tool is gone', async () => {
    const env = await withXclip('echo $$ > "$here/pid.new"; mv "$here/pid.new" "$here/pid"; exec sleep 60')
    const pidFile = join(env['PATH'] ?? '', 'pid')
    const controller = new AbortController()
    const outcome = read(env, { signal: controller.signal }).catch((error: unknown) => error)
    await expect.poll(() => readFile(pidFile, 'utf8').catch(() => ''), { timeout: 5000 }).toMatch(/\d/)
    const reason = new Error('client disconnected')
    controller.abort(reason)
    expect(await outcome).toBe(reason)
    await ended(pidFile)
  })

  it('starts no tool when it was aborted before', async () => {
    const env = await withXclip('touch "$here/started"')
    const reason = new Error('client disconnected')
    await expect(read(env, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    await expect(readFile(join(env['PATH'] ?? '', 'started'))).rejects.toThrow('ENOENT')
  })
})

describe('macOS, with stand-ins that print what its tools print', () => {
  /** `answers`: what osascript prints for each script. */
  function osascript(answers: Record<string, string>): string {
    const cases = Object.entries(answers).map(
      ([script, answer]) => `'${script}') printf '%s\\n' '${answer}';;`,
    )
    return `[ "$1" = -e ] || exit 64
      case "$2" in ${cases.join('\n')}
      *) echo "0:14: execution error: Can't make some data into the expected type. (-1700)" >&2; exit 1;; esac`
  }
  const hex = (bytes: Buffer) => bytes.toString('hex').toUpperCase()
  const pngInfo = '«class PNGf», 33498, «class 8BPS», 84866, GIF picture, 5678, TIFF picture, 98765'

  async function readMac(programs: Record<string, string>, options: Partial<ClipboardOptions> = {}) {
    return read({ PATH: await makePrograms(programs) }, { platform: 'darwin', ...options })
  }

  it('reads a picture by pngpaste', async () => {
    const pngpaste = `[ "$1" = - ] && echo ${PNG.toString('base64')} | base64 -d`
    const content = await readMac({ osascript: osascript({ 'clipboard info': pngInfo }), pngpaste })
    expect(content).toEqual({ kind: 'image', name: 'clipboard.png', body: PNG })
  })

  it.each([
    ['without pngpaste', {}],
    ['when pngpaste finds none', { pngpaste: 'echo "pngpaste: No image data found" >&2; exit 1' }],
  ])('reads a picture by osascript %s', async (_, more) => {
    const script = osascript({
      'clipboard info': pngInfo,
      'the clipboard as «class PNGf»': `«data PNGf${hex(PNG)}»`,
    })
    expect(await readMac({ osascript: script, ...more })).toMatchObject({ kind: 'image', body: PNG })
  })

  it('reads a GIF that has no PNG beside it', async () => {
    const script = osascript({
      'clipboard info': 'GIF picture, 43',
      'the clipboard as GIF picture': `«data GIFf${hex(GIF)}»`,
    })
    expect(await readMac({ osascript: script })).toEqual({ kind: 'image', name: 'clipboard.gif', body: GIF })
  })

  it('takes the file, not the icon that Finder puts beside it', async () => {
    const script = osascript({
      'clipboard info': '«class furl», 62, «class icns», 1155, TIFF picture, 9, «class utf8», 21, string, 21',
      'POSIX path of (the clipboard as «class furl»)': '/Users/me/å b.png',
    })
    expect(await readMac({ osascript: script })).toEqual({ kind: 'path', path: '/Users/me/å b.png' })
  })

  it('reads text by pbpaste, in UTF-8 although the server has no locale', async () => {
    const script = osascript({ 'clipboard info': '«class utf8», 21, string, 21, Unicode text, 42' })
    const pbpaste = `[ "$LC_CTYPE" = UTF-8 ] && printf /Users/me/å.png`
    expect(await readMac({ osascript: script, pbpaste })).toEqual({ kind: 'path', path: '/Users/me/å.png' })
  })

  it('says that an empty clipboard is empty', async () => {
    const programs = { osascript: osascript({ 'clipboard info': '' }), pbpaste: '' }
    expect((await failure(readMac(programs))).message).toMatch(EMPTY)
  })

  it.each([
    ['pngpaste', { pngpaste: 'exec cat /dev/zero' }],
    ['osascript', {}],
  ])('refuses a picture over the limit from %s', async (_, more) => {
    const script = osascript({
      'clipboard info': pngInfo,
      'the clipboard as «class PNGf»': `«data PNGf${hex(PNG)}»`,
    })
    const reading = readMac({ osascript: script, ...more }, { maxBytes: PNG.length - 40 })
    expect((await failure(reading)).code).toBe('too_large')
  })

  it('refuses a picture one byte over the limit, although its hex fits', async () => {
    const script = osascript({
      'clipboard info': pngInfo,
      'the clipboard as «class PNGf»': `«data PNGf${hex(PNG)}»`,
    })
    expect((await failure(readMac({ osascript: script }, { maxBytes: PNG.length - 1 }))).code).toBe(
      'too_large',
    )
  })

  it('says what to do when there is no session of a user', async () => {
    const { message } = await failure(readMac({ osascript: osascript({}) }))
    expect(message).toContain(`"osascript" ended with status 1 (0:14: execution error: Can't make`)
    expect(message).toContain('run upload-server in the session of the user who copies')
  })
})

describe('Windows, with a stand-in that prints what the script makes PowerShell print', () => {
  const say = (word: string, bytes: Buffer | string) =>
    `[ "$1 $2 $3 $4" = '-NoProfile -NonInteractive -STA -Command' ] || exit 64
    printf '%s ' ${word}; echo ${Buffer.from(bytes).toString('base64')} | tr -d '\\n'`

  async function readWin(script: string, options: Partial<ClipboardOptions> = {}) {
    return read({ PATH: await makePrograms({ 'powershell.exe': script }) }, { platform: 'win32', ...options })
  }

  it('reads a picture', async () => {
    expect(await readWin(say('image', PNG))).toEqual({ kind: 'image', name: 'clipboard.png', body: PNG })
  })

  it.each([
    ['C:\\Users\\me\\å b.png', { kind: 'path', path: 'C:\\Users\\me\\å b.png' }],
    ['"C:\\Users\\me\\a.png"', { kind: 'path', path: 'C:\\Users\\me\\a.png' }],
    ['c:/a.png', { kind: 'path', path: 'c:/a.png' }],
    ['\\\\host\\share\\a.png', { kind: 'path', path: '\\\\host\\share\\a.png' }],
    ['file:///C:/a%20b.png', { kind: 'path', path: 'C:\\a b.png' }],
    ['https://example.org/a.png', { kind: 'url', url: new URL('https://example.org/a.png') }],
    ['/home/me/a.png', undefined],
    ['C:a.png', undefined],
  ])('text %j', async (text, expected) => {
    const reading = readWin(say('text', text))
    if (expected) expect(await reading).toEqual(expected)
    else expect((await failure(reading)).message).toMatch(NO_REFERENCE)
  })

  it.each(['', 'echo'])('says that an empty clipboard is empty (%j)', async script => {
    expect((await failure(readWin(script))).message).toMatch(EMPTY)
  })

  it('refuses a picture over the limit, printed to its end or not', async () => {
    expect((await failure(readWin(say('image', PNG), { maxBytes: PNG.length - 1 }))).code).toBe('too_large')
    const endless = `printf 'image '; exec cat /dev/zero`
    expect((await failure(readWin(endless, { maxBytes: MIB }))).code).toBe('too_large')
  })

  it('stops text without end', async () => {
    expect((await failure(readWin(`printf 'text '; exec yes AAAA`))).message).toMatch(NO_REFERENCE)
  })

  it('sends a script that survives the command line: one line, no double quote', async () => {
    const folder = await makePrograms({ 'powershell.exe': 'printf %s "$5" > "$here/script"' })
    await failure(read({ PATH: folder }, { platform: 'win32' }))
    const script = await readFile(join(folder, 'script'), 'utf8')
    expect(script).toContain('[System.Windows.Forms.Clipboard]')
    expect(script).not.toMatch(/["\r\n]/)
    expect(script.length).toBeLessThan(8000)
  })

  it('quotes PowerShell when it fails', async () => {
    const { message } = await failure(
      readWin('echo "Requested Clipboard operation did not succeed." >&2; exit 1'),
    )
    expect(message).toContain(
      '"powershell.exe" ended with status 1 (Requested Clipboard operation did not succeed',
    )
  })
})

describe('WSL, with stand-ins for the programs of Windows', () => {
  const wslpath = `[ "$1" = -u ] && [ "$2" = 'C:\\Users\\me\\a.png' ] && echo /mnt/c/Users/me/a.png`
  const say = (word: string, bytes: Buffer | string) =>
    `printf '%s ' ${word}; echo ${Buffer.from(bytes).toString('base64')} | tr -d '\\n'`

  async function readWsl(programs: Record<string, string>, env: NodeJS.ProcessEnv = {}) {
    return read({ ...env, PATH: await makePrograms(programs), WSL_DISTRO_NAME: 'Debian' })
  }

  it('reads a picture by PowerShell', async () => {
    const content = await readWsl({ 'powershell.exe': say('image', PNG) })
    expect(content).toMatchObject({ kind: 'image', body: PNG })
  })

  it.each([
    ['C:\\Users\\me\\a.png', '/mnt/c/Users/me/a.png'],
    ['"C:\\Users\\me\\a.png"', '/mnt/c/Users/me/a.png'],
    ['file:///C:/Users/me/a.png', '/mnt/c/Users/me/a.png'],
    ['/home/me/a.png', '/home/me/a.png'],
    ['file:///home/me/a.png', '/home/me/a.png'],
  ])('takes the path %j for %s', async (text, path) => {
    expect(await readWsl({ 'powershell.exe': say('text', text), wslpath })).toEqual({ kind: 'path', path })
  })

  it('takes a URL', async () => {
    const content = await readWsl({ 'powershell.exe': say('text', 'https://example.org/a.png') })
    expect(content).toMatchObject({ kind: 'url' })
  })

  it('says when wslpath cannot translate a path', async () => {
    const { message } = await failure(readWsl({ 'powershell.exe': say('text', 'Z:\\a.png'), wslpath }))
    expect(message).toContain('"wslpath" ended with status 1')
  })

  it('asks the Linux display first', async () => {
    const programs = { xclip: offering({ 'image/gif': GIF }), 'powershell.exe': say('image', PNG) }
    expect(await readWsl(programs, { DISPLAY: ':0' })).toMatchObject({ kind: 'image', body: GIF })
  })

  it('asks PowerShell when the Linux display has nothing', async () => {
    const programs = { xclip: offering({ UTF8_STRING: 'words' }), 'powershell.exe': say('image', PNG) }
    expect(await readWsl(programs, { DISPLAY: ':0' })).toMatchObject({ kind: 'image', body: PNG })
  })
})
