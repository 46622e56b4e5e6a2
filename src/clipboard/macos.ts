import { systemCode } from '../errors.ts'
import {
  type ClipboardContent,
  imageTooLarge,
  otherText,
  TEXT_BYTES,
  toImage,
  toReference,
} from './content.ts'
import { type ClipboardReading, runTool, type Tool, toolFailed } from './tool.ts'

const SESSION = 'run upload-server in the session of the user who copies'
// pngpaste is tried first for images, because osascript prints hex, which takes seconds for a large screenshot.
const PNGPASTE: Tool = { program: 'pngpaste', remedy: 'install it with Homebrew', check: SESSION }
const OSASCRIPT: Tool = { program: 'osascript', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }
const PBPASTE: Tool = { program: 'pbpaste', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }

/** Names of types in `clipboard info`, best first. */
const IMAGE_CLASSES = ['«class PNGf»', 'JPEG picture', 'GIF picture', 'TIFF picture']

/** A file is preferred to an image, because Finder also puts the icon of a copied file on the clipboard. */
export async function readMacos(reading: ClipboardReading): Promise<ClipboardContent> {
  const info = (await runScript('clipboard info', TEXT_BYTES, reading)).stdout.toString()
  if (info.includes('«class furl»')) {
    const script = 'POSIX path of (the clipboard as «class furl»)'
    const { stdout } = await runScript(script, TEXT_BYTES, reading)
    return toReference(stdout.toString(), 'posix')
  }
  const image = IMAGE_CLASSES.find(name => info.includes(name))
  if (image) {
    const body = (await readByPngpaste(reading)) ?? (await readByScript(image, reading))
    return toImage(body, reading.maxBytes)
  }
  return readText(reading)
}

async function runScript(script: string, limit: number, reading: ClipboardReading) {
  const output = await runTool(OSASCRIPT, ['-e', script], limit, reading)
  if (!output.cut && output.exitCode !== 0) throw toolFailed(OSASCRIPT, output)
  return output
}

/** Undefined if pngpaste is not installed, or finds no image. */
async function readByPngpaste(reading: ClipboardReading): Promise<Buffer | undefined> {
  try {
    const { exitCode, stdout, cut } = await runTool(PNGPASTE, ['-'], reading.maxBytes, reading)
    if (cut) throw imageTooLarge(reading.maxBytes)
    return exitCode === 0 ? stdout : undefined
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** AppleScript prints bytes in hex: `«data PNGf89504E47…»`. */
async function readByScript(name: string, reading: ClipboardReading): Promise<Buffer> {
  const limit = 2 * reading.maxBytes + 64
  const { stdout, cut } = await runScript(`the clipboard as ${name}`, limit, reading)
  if (cut) throw imageTooLarge(reading.maxBytes)
  const start = stdout.indexOf('data ') + 'data PNGf'.length
  return Buffer.from(stdout.toString('latin1', start), 'hex') // ends at the first character that is not a hex digit
}

async function readText(reading: ClipboardReading): Promise<ClipboardContent> {
  // Without it, pbpaste replaces every non-ASCII character if the server has no locale.
  const env = { ...reading.env, LC_CTYPE: 'UTF-8' }
  const output = await runTool(PBPASTE, ['-Prefer', 'txt'], TEXT_BYTES, { ...reading, env })
  if (output.cut) throw otherText()
  if (output.exitCode !== 0) throw toolFailed(PBPASTE, output)
  return toReference(output.stdout.toString(), 'posix')
}
