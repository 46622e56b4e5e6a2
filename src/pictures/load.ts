import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { importOptional } from '../packages/optional.ts'
import { Problem } from '../problem.ts'
import { LOADERS } from './job.ts'

export type SharpModule = typeof import('sharp').default

/** Raw pixels between our own steps. */
const BETWEEN = 'VipsForeignLoadPng'

/** Formats of files that the configuration names. */
export const TRUSTED_LOADERS = [...new Set(Object.values(LOADERS)), 'VipsForeignLoadSvg']

/** Loads sharp, without its cache. @throws UploadError `destination_failed` if it is not installed */
export const loadSharp = once(async (): Promise<SharpModule> => {
  const sharp = await loadLibrary('sharp', async () => (await import('sharp')).default)
  sharp.cache(false)
  sharp.concurrency(1)
  return sharp
})

/**
 * Limits libvips to these loaders. libvips detects the format itself, and can see another format than we do, such as SVG,
 * which can take forever to draw.
 */
export function allowLoaders(sharp: SharpModule, loaders: readonly string[]): void {
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: [BETWEEN, ...loaders] })
}

/** Loads a package for images. @throws UploadError `destination_failed` if it is not installed */
export async function loadLibrary<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await importOptional(name, load)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { message, cause } = error
    throw new UploadError('destination_failed', `Image processing is not available: ${message}`, { cause })
  }
}
