import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ClipboardContent, readClipboard } from '../../src/clipboard/index.ts'
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

const image = (body: Buffer, name = 'clipboard.png'): ClipboardContent => ({ kind: 'image', name, body })
const path = (at: string): ClipboardContent => ({ kind: 'path', path: at })
const url = (at: string): ClipboardContent => ({ kind: 'url', url: new URL(at) })

const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64')
const TOO_LARGE = /^The image in the clipboard is larger than/
const WAYLAND_AND_X11 = { WAYLAND_DISPLAY: 'wayland-0', DISPLAY: ':0' }
const WSL = { WSL_DISTRO_NAME: 'Debian' }

/** What osascript prints for each script. */
function osascript(answers: Record<string, string>): string {
  const cases = Object.entries(answers).map(([script, answer]) => `'${script}') printf '%s\\n' '${answer}';;`)
  return `[ "$1" = -e ] || exit 64
    case "$2" in ${cases.join('\n')}
    *) echo "0:14: execution error: Can't make some data into the expected type. (-1700)" >&2; exit 1;; esac`
}
const MAC_PNG = {
  'clipboard info': '«class PNGf», 33498, «class 8BPS», 84866, GIF picture, 5678, TIFF picture, 98765',
  'the clipboard as «class PNGf»': `«data PNGf${PNG.toString('hex').toUpperCase()}»`,
}
const MAC_FILE = {
  'clipboard info': '«class furl», 62, «class icns», 1155, TIFF picture, 9, «class utf8», 21, string, 21',
  'POSIX path of (the clipboard as «class furl»)': '/Users/me/å b.png',
}
const MAC_GIF = {
  'clipboard info': 'GIF picture, 43',
  'the clipboard as GIF picture': `«data GIFf${GIF.toString('hex').toUpperCase()}»`,
}
const MAC_TEXT = { 'clipboard info': '«class utf8», 21, string, 21, Unicode text, 42' }

/** What the script makes PowerShell print. */
const say = (word: string, bytes: Buffer | string) =>
  `[ "$1 $2 $3 $4" = '-NoProfile -NonInteractive -STA -Command' ] || exit 64
  printf '%s ' ${word}; echo ${base64(bytes)} | tr -d '\\n'`
const powershell = (script: string) => ({ 'powershell.exe': script })
const WSLPATH = `[ "$1" = -u ] && [ "$2" = 'C:\\Users\\me\\a.png' ] && echo /mnt/c/Users/me/a.png`

type Row = [
  what: string,
  platform: NodeJS.Platform,
  programs: Record<string, string>,
  /** What is found, or the message of the failure. */
  expected: ClipboardContent | RegExp,
  env?: NodeJS.ProcessEnv,
  maxBytes?: number,
]
type Expected = Row[3]

const onX11 = (what: string, types: Record<string, string | Buffer>, expected: Expected): Row => {
  return [what, 'linux', { xclip: offering(types) }, expected, { DISPLAY: ':0' }]
}
const onMac = (what: string, answers: object, expected: Expected, more = {}, maxBytes = MIB): Row => {
  return [what, 'darwin', { osascript: osascript({ ...answers }), ...more }, expected, {}, maxBytes]
}
const onWindows = (what: string, script: string, expected: Expected, maxBytes = MIB): Row => {
  return [what, 'win32', powershell(script), expected, {}, maxBytes]
}
const inWsl = (what: string, text: string | Buffer, expected: Expected, xclip?: object): Row => {
  const script = say(typeof text === 'string' ? 'text' : 'image', text)
  const programs = {
    ...powershell(script),
    wslpath: WSLPATH,
    ...(xclip && { xclip: offering({ ...xclip }) }),
  }
  return [what, 'linux', programs, expected, { ...WSL, ...(xclip && { DISPLAY: ':0' }) }]
}

const PICTURE_FILE = { 'text/uri-list': 'file:///a.png', 'image/png': PNG }
const FILES = { 'x-special/gnome-copied-files': 'copy\nfile:///1.png\nfile:///2.png', UTF8_STRING: 'x' }
const FILE = { UTF8_STRING: '/t', 'text/uri-list': '# list\r\nfile:///a.png\r\n' }
const pngpaste = (script: string) => ({ pngpaste: script })
const PRINT_PNG = `[ "$1" = - ] && echo ${base64(PNG)} | base64 -d`
const PBPASTE = { pbpaste: `[ "$LC_CTYPE" = UTF-8 ] && printf /Users/me/å.png` }
const NO_SESSION = /status 1 \(0:14: .*: run upload-server in the session of the user/
const REFUSED = 'echo "Requested operation did not succeed." >&2; exit 1'

const ROWS: Row[] = [
  onX11('png before jpeg', { 'image/jpeg': 'no', 'image/png': PNG, UTF8_STRING: 'x' }, image(PNG)),
  onX11('gif before other types', { 'image/x-other': 'no', 'image/gif': GIF }, image(GIF, 'clipboard.gif')),
  onX11('any image type', { 'text/html': '<img>', 'image/x-other': GIF }, image(GIF, 'clipboard.gif')),
  onX11('a picture before its file', PICTURE_FILE, image(PNG)),
  onX11('the first of several files', FILES, path('/1.png')),
  onX11('a file before text', FILE, path('/a.png')),
  onX11(
    'text behind a list of no files',
    { UTF8_STRING: '/text', 'text/uri-list': 'mailto:me' },
    path('/text'),
  ),
  onX11('a picture that is none', { 'image/png': 'hello' }, /offers an image, but its data is not an image/),
  onX11('something else', { 'audio/x-wav': 'RIFF' }, /contains neither an image nor a file nor text/),
  onX11('no password', { UTF8_STRING: 'correct horse' }, /^(?!.*horse).*neither an absolute path nor a URL/),
  [
    'X11 when wl-paste hangs',
    'linux',
    { 'wl-paste': 'sleep 60', xclip: offering({ 'image/png': PNG }) },
    image(PNG),
    WAYLAND_AND_X11,
  ],
  ['every missing tool', 'linux', {}, /package "wl-clipboard"[\s\S]*package "xclip"/, WAYLAND_AND_X11],
  onMac('pngpaste', MAC_PNG, image(PNG), pngpaste(PRINT_PNG)),
  onMac('osascript without pngpaste', MAC_PNG, image(PNG)),
  onMac(
    'osascript when pngpaste finds none',
    MAC_PNG,
    image(PNG),
    pngpaste('echo "No image data" >&2; exit 1'),
  ),
  onMac('a GIF that has no PNG beside it', MAC_GIF, image(GIF, 'clipboard.gif')),
  onMac('a file instead of its icon from Finder', MAC_FILE, path('/Users/me/å b.png')),
  onMac('text in UTF-8 without a locale', MAC_TEXT, path('/Users/me/å.png'), PBPASTE),
  onMac('an empty clipboard', { 'clipboard info': '' }, EMPTY, { pbpaste: '' }),
  onMac('too much from pngpaste', MAC_PNG, TOO_LARGE, pngpaste('exec cat /dev/zero')),
  onMac('too much from osascript', MAC_PNG, TOO_LARGE, {}, PNG.length - 40),
  onMac('one byte too much, although its hex fits', MAC_PNG, TOO_LARGE, {}, PNG.length - 1),
  onMac('no session of a user', {}, NO_SESSION),
  onWindows('a picture', say('image', PNG), image(PNG)),
  onWindows('an empty clipboard', '', EMPTY),
  onWindows('an empty line', 'echo', EMPTY),
  onWindows('a picture over the limit', say('image', PNG), TOO_LARGE, PNG.length - 1),
  onWindows('a picture without end', `printf 'image '; exec cat /dev/zero`, TOO_LARGE),
  onWindows('text without end', `printf 'text '; exec yes AAAA`, TOO_LARGE),
  onWindows(
    'its words when it fails',
    REFUSED,
    /"powershell.exe" ended with status 1 \(Requested operation did/,
  ),
  onWindows('a path', say('text', 'C:\\Users\\me\\å b.png'), path('C:\\Users\\me\\å b.png')),
  onWindows('a path in quotes', say('text', '"C:\\Users\\me\\a.png"'), path('C:\\Users\\me\\a.png')),
  onWindows('a path with slashes', say('text', 'c:/a.png'), path('c:/a.png')),
  onWindows('a share', say('text', '\\\\host\\share\\a.png'), path('\\\\host\\share\\a.png')),
  onWindows('a file: URL', say('text', 'file:///C:/a%20b.png'), path('C:\\a b.png')),
  onWindows('a URL', say('text', 'https://example.org/a.png'), url('https://example.org/a.png')),
  onWindows('no path of Linux', say('text', '/home/me/a.png'), NO_REFERENCE),
  onWindows('no relative path', say('text', 'C:a.png'), NO_REFERENCE),
  inWsl('a picture in WSL', PNG, image(PNG)),
  inWsl('a path in WSL', 'C:\\Users\\me\\a.png', path('/mnt/c/Users/me/a.png')),
  inWsl('a path in quotes in WSL', '"C:\\Users\\me\\a.png"', path('/mnt/c/Users/me/a.png')),
  inWsl('a file: URL in WSL', 'file:///C:/Users/me/a.png', path('/mnt/c/Users/me/a.png')),
  inWsl('a path of Linux in WSL', '/home/me/a.png', path('/home/me/a.png')),
  inWsl('a file: URL of Linux in WSL', 'file:///home/me/a.png', path('/home/me/a.png')),
  inWsl('a URL in WSL', 'https://example.org/a.png', url('https://example.org/a.png')),
  inWsl('no unknown path in WSL', 'Z:\\a.png', /"wslpath" ended with status 1/),
  inWsl('the Linux display first', PNG, image(GIF, 'clipboard.gif'), { 'image/gif': GIF }),
  inWsl('PowerShell when the Linux display has nothing', PNG, image(PNG), { UTF8_STRING: 'words' }),
]

it.each(ROWS)(
  'reads or names %s on %s',
  async (_, platform, programs, expected, env = {}, maxBytes = 20 * MIB) => {
    const reading = read(
      { ...env, PATH: await makePrograms(programs) },
      { platform, maxBytes, timeoutMs: 4000 },
    )
    if (expected instanceof RegExp) expect((await failure(reading)).message).toMatch(expected)
    else expect(await reading).toEqual(expected)
  },
)

it('says once what both displays say', async () => {
  const none = 'echo "target TARGETS not available, No selection" >&2; exit 1'
  const PATH = await makePrograms({ 'wl-paste': none, xclip: none })
  expect((await failure(read({ PATH, ...WAYLAND_AND_X11 }))).message.match(/empty/g)).toHaveLength(1)
})

it('sends PowerShell a script that survives the command line: one line, no double quote', async () => {
  const folder = await makePrograms(powershell('printf %s "$5" > "$here/script"'))
  await failure(read({ PATH: folder }, { platform: 'win32' }))
  const script = await readFile(join(folder, 'script'), 'utf8')
  expect(script).toContain('[System.Windows.Forms.Clipboard]')
  expect(script).not.toMatch(/["\r\n]/)
  expect(script.length).toBeLessThan(8000)
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
