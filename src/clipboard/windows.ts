import {
  type ClipboardContent,
  emptyClipboard,
  imageTooLarge,
  otherText,
  TEXT_BYTES,
  textLimit,
  toImage,
  toReference,
} from './content.ts'
import { type ClipboardReading, runTool, type Tool } from './tool.ts'

const POWERSHELL: Tool = {
  program: 'powershell.exe',
  remedy: 'add the folder "System32\\WindowsPowerShell\\v1.0" of Windows',
  check: 'run upload-server in the session of the user who copies',
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

// Windows Forms reads the clipboard only in a single-threaded apartment (-STA).
const ARGUMENTS = ['-NoProfile', '-NonInteractive', '-STA', '-Command', SCRIPT]

/** Returns a path in the form of Windows, with a drive letter or a share. */
export async function readWindows(reading: ClipboardReading): Promise<ClipboardContent> {
  const { word, bytes } = await askPowershell(reading)
  if (word === 'image') return toImage(bytes, reading.maxBytes)
  return toReference(bytes.toString(), 'windows')
}

/** Reads the clipboard of Windows from inside WSL; returns a path in the form of Linux. */
export async function readWsl(reading: ClipboardReading): Promise<ClipboardContent> {
  const { word, bytes } = await askPowershell(reading)
  if (word === 'image') return toImage(bytes, reading.maxBytes)
  const text = bytes.toString()
  if (/^\s*(?:\/|file:\/\/\/(?![a-z]:))/i.test(text)) return toReference(text, 'posix')
  const found = toReference(text, 'windows')
  if (found.kind !== 'path') return found
  const path = await runTool(WSLPATH, ['-u', found.path], textLimit, reading)
  return toReference(path.toString(), 'posix')
}

/** The first word that the script printed, and the bytes after it. */
async function askPowershell(reading: ClipboardReading): Promise<{ word: string; bytes: Buffer }> {
  const { maxBytes } = reading
  const limit = {
    bytes: Math.max(TEXT_BYTES, 4 * Math.ceil(maxBytes / 3)) + 64,
    tooLong: (begin: Buffer) => (wordOf(begin) === 'image' ? imageTooLarge(maxBytes) : otherText()),
  }
  const stdout = await runTool(POWERSHELL, ARGUMENTS, limit, reading)
  const word = wordOf(stdout)
  if (word === undefined) throw emptyClipboard()
  return { word, bytes: Buffer.from(stdout.toString('latin1', word.length + 1), 'base64') }
}

const wordOf = (printed: Buffer) => /^(?:image|text)(?= )/.exec(printed.toString('latin1', 0, 8))?.[0]
