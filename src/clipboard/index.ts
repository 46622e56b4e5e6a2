import { release } from 'node:os'
import { UploadError } from '../errors.ts'
import type { ClipboardContent } from './content.ts'
import { type ClipboardReader, readMacos, readWayland, readWindows, readWsl, readX11 } from './readers.ts'

export type { ClipboardContent } from './content.ts'

export interface ClipboardOptions {
  /** Environment of the tools: `PATH`, `DISPLAY`, `WAYLAND_DISPLAY`, … */
  env: NodeJS.ProcessEnv
  /** Default: the platform of this process. */
  platform?: NodeJS.Platform
  /** Timeout of the whole read, milliseconds. Default: 1900, which leaves time for a response within 2 s. */
  timeoutMs?: number
  /** Maximum size of an image, bytes. */
  maxBytes: number
  signal?: AbortSignal
}

/**
 * Reads the clipboard with the tools that are installed: an image, otherwise a copied file (the first of several),
 * otherwise text that is a path or URL. Paths and URLs are not opened, because the client may not be allowed to use them.
 *
 * @throws UploadError `source_failed` without a display, a tool or usable content, or after the timeout;
 *   `too_large`
 */
export async function readClipboard(options: ClipboardOptions): Promise<ClipboardContent> {
  const { env, platform = process.platform, timeoutMs = 1900, maxBytes, signal } = options
  const readers = chooseReaders(env, platform)
  const end = performance.now() + timeoutMs
  const failures: UploadError[] = []
  for (const [index, read] of readers.entries()) {
    // If one tool hangs, there is still time for the next one.
    const share = (end - performance.now()) / (readers.length - index)
    try {
      return await read({ env, maxBytes, signal, deadline: performance.now() + share })
    } catch (error) {
      if (!(error instanceof UploadError) || error.code !== 'source_failed') throw error
      failures.push(error)
    }
  }
  const messages = new Set(failures.map(failure => failure.message))
  throw new UploadError('source_failed', [...messages].join(' '), { cause: failures[0]?.cause })
}

function chooseReaders(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): ClipboardReader[] {
  if (platform === 'darwin') return [readMacos]
  if (platform === 'win32') return [readWindows]
  const readers: ClipboardReader[] = []
  if (env['WAYLAND_DISPLAY']) readers.push(readWayland)
  if (env['DISPLAY']) readers.push(readX11)
  if (platform === 'linux' && isWsl(env)) readers.push(readWsl)
  if (readers.length > 0) return readers
  throw new UploadError(
    'source_failed',
    'The clipboard is not available, because neither "WAYLAND_DISPLAY" nor "DISPLAY" is set. Run upload-server inside the graphical session, or send the image as a file.',
  )
}

export function isWsl(env: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(env['WSL_DISTRO_NAME']) || /microsoft/i.test(release())
}
