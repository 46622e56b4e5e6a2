import { systemCode } from '../../../errors.ts'
import { type ClipboardContent, otherText, TEXT_BYTES, toImage, tooLarge, toReference } from './content.ts'
import { type Attempt, runTool, type Tool, toolFailed } from './tool.ts'

const SESSION = 'run upload-server in the session of the user who copies'
// pngpaste is asked first for pictures: osascript prints hex, which takes it seconds for a large screenshot.
const PNGPASTE: Tool = { program: 'pngpaste', remedy: 'install it with Homebrew', check: SESSION }
const OSASCRIPT: Tool = { program: 'osascript', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }
const PBPASTE: Tool = { program: 'pbpaste', remedy: 'add "/usr/bin", where macOS has it', check: SESSION }

/** As `clipboard info` names them; best first. */
const IMAGE_CLASSES = ['«class PNGf»', 'JPEG picture', 'GIF picture', 'TIFF picture']

/** A file comes before a picture here: Finder puts the icon of a copied file beside it. */
export async function readMacos(attempt: Attempt): Promise<ClipboardContent> {
  const info = (await runScript('clipboard info', TEXT_BYTES, attempt)).stdout.toString()
  if (info.includes('«class furl»')) {
    const script = 'POSIX path of (the clipboard as «class furl»)'
    const { stdout } = await runScript(script, TEXT_BYTES, attempt)
    return toReference(stdout.toString(), 'posix')
  }
  const image = IMAGE_CLASSES.find(name => info.includes(name))
  if (image) {
    const body = (await readByPngpaste(attempt)) ?? (await readByScript(image, attempt))
    return toImage(body, attempt.maxBytes)
  }
  return readText(attempt)
}

async function runScript(script: string, limit: number, attempt: Attempt) {
  const output = await runTool(OSASCRIPT, ['-e', script], limit, attempt)
  if (!output.cut && output.exitCode !== 0) throw toolFailed(OSASCRIPT, output)
  return output
}

/** Undefined when pngpaste is not installed or finds no picture. */
async function readByPngpaste(attempt: Attempt): Promise<Buffer | undefined> {
  try {
    const { exitCode, stdout, cut } = await runTool(PNGPASTE, ['-'], attempt.maxBytes, attempt)
    if (cut) throw tooLarge(attempt.maxBytes)
    return exitCode === 0 ? stdout : undefined
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** AppleScript prints bytes in hex: `«data PNGf89504E47…»`. */
async function readByScript(name: string, attempt: Attempt): Promise<Buffer> {
  const limit = 2 * attempt.maxBytes + 64
  const { stdout, cut } = await runScript(`the clipboard as ${name}`, limit, attempt)
  if (cut) throw tooLarge(attempt.maxBytes)
  const start = stdout.indexOf('data ') + 'data PNGf'.length
  return Buffer.from(stdout.toString('latin1', start), 'hex') // ends at the first character that is no digit
}

async function readText(attempt: Attempt): Promise<ClipboardContent> {
  // Without it pbpaste replaces every character that is not ASCII when the server has no locale.
  const env = { ...attempt.env, LC_CTYPE: 'UTF-8' }
  const output = await runTool(PBPASTE, ['-Prefer', 'txt'], TEXT_BYTES, { ...attempt, env })
  if (output.cut) throw otherText()
  if (output.exitCode !== 0) throw toolFailed(PBPASTE, output)
  return toReference(output.stdout.toString(), 'posix')
}
