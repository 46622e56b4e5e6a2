import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { importOptional } from '../packages/optional.ts'
import { LOADERS } from './job.ts'

export type SharpModule = typeof import('sharp').default

/** What our own steps hand on to each other. */
const BETWEEN = 'VipsForeignLoadPng'

/** What may be read of a file that the configuration names. */
export const TRUSTED_LOADERS = [...new Set(Object.values(LOADERS)), 'VipsForeignLoadSvg']

/** sharp, without its cache. @throws UploadError `delivery_failed` when it is not installed */
export const loadSharp = once(async (): Promise<SharpModule> => {
  const sharp = await loadLibrary('sharp', async () => (await import('sharp')).default)
  sharp.cache(false)
  sharp.concurrency(1)
  return sharp
})

/**
 * From now on libvips reads by these loaders only. It looks at the bytes by itself: what begins like one format may be
 * another one to it, such as SVG, which can draw for ever.
 */
export function allowLoaders(sharp: SharpModule, loaders: readonly string[]): void {
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: [BETWEEN, ...loaders] })
}

/** A package that pictures need. @throws UploadError `delivery_failed` when it is not installed */
export async function loadLibrary<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await importOptional(name, load)
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    const { message, cause } = error
    throw new UploadError('delivery_failed', `The server can't process images: ${message}.`, { cause })
  }
}
