import { UploadError } from '../errors.ts'
import {
  type ClipboardContent,
  emptyClipboard,
  firstOfList,
  TEXT_BYTES,
  toImage,
  toReference,
} from './content.ts'
import { type ClipboardReading, runTool, type Tool } from './tool.ts'

export type ClipboardReader = (reading: ClipboardReading) => Promise<ClipboardContent>

// X11 and Wayland

/** The preferred image types, best first. All other `image/…` types come after them. */
const IMAGE_TYPES = ['png', 'jpeg', 'gif', 'webp', 'bmp', 'tiff', 'svg+xml'].map(type => `image/${type}`)
/** Types of a copied file: the common one, then those of GNOME and MATE. */
const FILE_TYPES = ['text/uri-list', 'x-special/gnome-copied-files', 'x-special/mate-copied-files']
/** Names of X11 (ICCCM, section 2.6.2) and MIME types; both displays use both. UTF-8 first. */
const TEXT_TYPES = ['UTF8_STRING', 'text/plain;charset=utf-8', 'text/plain', 'STRING', 'TEXT']

const XCLIP: Tool = {
  program: 'xclip',
  remedy: 'install the package "xclip"',
  check: 'check that "DISPLAY" and "XAUTHORITY" belong to a running display that this account may use',
  empty: /target .{0,200} not available/i,
}
const WL_PASTE: Tool = {
  program: 'wl-paste',
  remedy: 'install the package "wl-clipboard"',
  check:
    'check that "WAYLAND_DISPLAY" and "XDG_RUNTIME_DIR" belong to a running compositor that this account may use',
  empty: /no selection|nothing is copied|no suitable type/i,
}

/** Also the clipboard of Xwayland and XQuartz. xsel is not a substitute, because it reads text only. */
export const readX11 = readerOf(XCLIP, 'TARGETS', type => ['-selection', 'clipboard', '-t', type, '-o'])

/** On compositors without a data-control protocol (GNOME) wl-paste takes the focus for a moment. */
export const readWayland = readerOf(WL_PASTE, '', type =>
  type === '' ? ['--list-types'] : ['--no-newline', '--type', type],
)

/**
 * Lists the types first, because an owner can return text if it is asked for an image (xclip does).
 *
 * @param list the type that lists the others, one per line
 */
function readerOf(tool: Tool, list: string, argumentsFor: (type: string) => string[]): ClipboardReader {
  return async reading => {
    const { maxBytes } = reading
    const ask = (type: string, imageBytes?: number) => runTool(tool, argumentsFor(type), reading, imageBytes)
    const types = (await ask(list)).toString().split('\n')
    const offered = (wanted: readonly string[]) => wanted.find(type => types.includes(type))
    const image = offered(IMAGE_TYPES) ?? types.find(type => type.startsWith('image/'))
    if (image) return toImage(await ask(image, maxBytes), maxBytes)
    const files = offered(FILE_TYPES)
    const first = files && firstOfList((await ask(files)).toString(), 'posix')
    if (first) return first
    const text = offered(TEXT_TYPES)
    if (text) return toReference((await ask(text)).toString(), 'posix')
    throw new UploadError(
      'source_failed',
      'The clipboard contains neither an image nor a file nor text. Copy an image and repeat the upload.',
    )
  }
}

// macOS

const SESSION = 'run upload-server in the session of the user who copies'
// pngpaste is tried first for images, because osascript prints hex, which takes seconds for a large screenshot.
const PNGPASTE: Tool = { program: 'pngpaste', remedy: 'install it with Homebrew', check: SESSION }
const OSASCRIPT: Tool = { program: 'osascript', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }
const PBPASTE: Tool = { ...OSASCRIPT, program: 'pbpaste' }

/** Names of types in `clipboard info`, best first. */
const IMAGE_CLASSES = ['«class PNGf»', 'JPEG picture', 'GIF picture', 'TIFF picture']

/** A file is preferred to an image, because Finder also puts the icon of a copied file on the clipboard. */
export async function readMacos(reading: ClipboardReading): Promise<ClipboardContent> {
  const { maxBytes } = reading
  const runScript = (script: string, imageBytes?: number) =>
    runTool(OSASCRIPT, ['-e', script], reading, imageBytes)
  const info = (await runScript('clipboard info')).toString()
  if (info.includes('«class furl»')) {
    const path = await runScript('POSIX path of (the clipboard as «class furl»)')
    return toReference(path.toString(), 'posix')
  }
  const image = IMAGE_CLASSES.find(name => info.includes(name))
  if (image) {
    const body = await runTool(PNGPASTE, ['-'], reading, maxBytes).catch((error: unknown) => {
      // It is not installed, or finds no image.
      if (error instanceof UploadError && error.code === 'source_failed') return undefined
      throw error
    })
    const script = `the clipboard as ${image}`
    return toImage(body ?? fromHex(await runScript(script, 2 * maxBytes + 64)), maxBytes)
  }
  // Without it, pbpaste replaces every non-ASCII character if the server has no locale.
  const env = { ...reading.env, LC_CTYPE: 'UTF-8' }
  const text = await runTool(PBPASTE, ['-Prefer', 'txt'], { ...reading, env })
  return toReference(text.toString(), 'posix')
}

/** AppleScript prints bytes in hex: `«data PNGf89504E47…»`. */
function fromHex(printed: Buffer): Buffer {
  const start = printed.indexOf('data ') + 'data PNGf'.length
  return Buffer.from(printed.toString('latin1', start), 'hex') // ends at the first character that is not a hex digit
}

// Windows, and Windows seen from WSL

const POWERSHELL: Tool = {
  program: 'powershell.exe',
  remedy: 'add the folder "System32\\WindowsPowerShell\\v1.0" of Windows',
  check: SESSION,
}
const WSLPATH: Tool = {
  program: 'wslpath',
  remedy: 'WSL has it in "/usr/bin"',
  check: 'copy the image instead of its path',
}

/**
 * Prints a word and Base64, or nothing if the clipboard is empty. Browsers and screenshot tools offer the type "PNG", which is
 * used unchanged, because GetImage would drop its transparency. The script must contain no double quote and no line break,
 * because it is passed on a command line. Base64 protects file names from the code page of the console.
 */
const SCRIPT = [
  `$ErrorActionPreference = 'Stop'`,
  `$ProgressPreference = 'SilentlyContinue'`,
  `Add-Type -AssemblyName System.Windows.Forms, System.Drawing`,
  `$board = [System.Windows.Forms.Clipboard]`,
  `function Write-Bytes($word, $bytes) { [Console]::Out.Write($word + ' ' + [Convert]::ToBase64String($bytes)); exit 0 }`,
  `function Write-Text($word, $text) { Write-Bytes $word ([System.Text.Encoding]::UTF8.GetBytes($text)) }`,
  `$png = $board::GetData('PNG')`,
  `if ($png -is [System.IO.MemoryStream]) { Write-Bytes 'image' ($png.ToArray()) }`,
  `$image = $board::GetImage()`,
  `if ($image) { $png = New-Object System.IO.MemoryStream; $image.Save($png, [System.Drawing.Imaging.ImageFormat]::Png); Write-Bytes 'image' ($png.ToArray()) }`,
  `$files = $board::GetFileDropList()`,
  `if ($files.Count -gt 0) { Write-Text 'text' ($files[0]) }`,
  `if ($board::ContainsText()) { Write-Text 'text' ($board::GetText()) }`,
].join('; ')

/** Returns a path in the form of Windows, with a drive letter or a share. */
export async function readWindows(reading: ClipboardReading): Promise<ClipboardContent> {
  const found = await askPowershell(reading)
  return typeof found === 'string' ? toReference(found, 'windows') : found
}

/** Reads the clipboard of Windows from inside WSL; returns a path in the form of Linux. */
export async function readWsl(reading: ClipboardReading): Promise<ClipboardContent> {
  const text = await askPowershell(reading)
  if (typeof text !== 'string') return text
  if (/^\s*(?:\/|file:\/\/\/(?![a-z]:))/i.test(text)) return toReference(text, 'posix')
  const found = toReference(text, 'windows')
  if (found.kind !== 'path') return found
  const path = await runTool(WSLPATH, ['-u', found.path], reading)
  return toReference(path.toString(), 'posix')
}

/** @returns an image, or a text */
async function askPowershell(reading: ClipboardReading): Promise<ClipboardContent | string> {
  const { maxBytes } = reading
  const bytes = Math.max(TEXT_BYTES, 4 * Math.ceil(maxBytes / 3)) + 64
  // Windows Forms reads the clipboard only in a single-threaded apartment (-STA).
  const args = ['-NoProfile', '-NonInteractive', '-STA', '-Command', SCRIPT]
  const printed = (await runTool(POWERSHELL, args, reading, bytes)).toString('latin1')
  const [word, base64] = printed.split(' ')
  if (base64 === undefined) throw emptyClipboard()
  const content = Buffer.from(base64, 'base64')
  return word === 'image' ? toImage(content, maxBytes) : content.toString()
}
