import { UploadError } from '../errors.ts'
import {
  type ClipboardContent,
  imageLimit,
  imageTooLarge,
  textLimit,
  toImage,
  toReference,
} from './content.ts'
import { type ClipboardReading, runTool, type Tool } from './tool.ts'

const SESSION = 'run upload-server in the session of the user who copies'
// pngpaste is tried first for images, because osascript prints hex, which takes seconds for a large screenshot.
const PNGPASTE: Tool = { program: 'pngpaste', remedy: 'install it with Homebrew', check: SESSION }
const OSASCRIPT: Tool = { program: 'osascript', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }
const PBPASTE: Tool = { program: 'pbpaste', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }

/** Names of types in `clipboard info`, best first. */
const IMAGE_CLASSES = ['«class PNGf»', 'JPEG picture', 'GIF picture', 'TIFF picture']

/** A file is preferred to an image, because Finder also puts the icon of a copied file on the clipboard. */
export async function readMacos(reading: ClipboardReading): Promise<ClipboardContent> {
  const runScript = (script: string, limit = textLimit) => runTool(OSASCRIPT, ['-e', script], limit, reading)
  const info = (await runScript('clipboard info')).toString()
  if (info.includes('«class furl»')) {
    const path = await runScript('POSIX path of (the clipboard as «class furl»)')
    return toReference(path.toString(), 'posix')
  }
  const image = IMAGE_CLASSES.find(name => info.includes(name))
  if (image) {
    const { maxBytes } = reading
    const body = await runTool(PNGPASTE, ['-'], imageLimit(maxBytes), reading).catch((error: unknown) => {
      // It is not installed, or finds no image.
      if (error instanceof UploadError && error.code === 'source_failed') return undefined
      throw error
    })
    const limit = { bytes: 2 * maxBytes + 64, tooLong: () => imageTooLarge(maxBytes) }
    return toImage(body ?? fromHex(await runScript(`the clipboard as ${image}`, limit)), maxBytes)
  }
  // Without it, pbpaste replaces every non-ASCII character if the server has no locale.
  const env = { ...reading.env, LC_CTYPE: 'UTF-8' }
  const text = await runTool(PBPASTE, ['-Prefer', 'txt'], textLimit, { ...reading, env })
  return toReference(text.toString(), 'posix')
}

/** AppleScript prints bytes in hex: `«data PNGf89504E47…»`. */
function fromHex(printed: Buffer): Buffer {
  const start = printed.indexOf('data ') + 'data PNGf'.length
  return Buffer.from(printed.toString('latin1', start), 'hex') // ends at the first character that is not a hex digit
}
