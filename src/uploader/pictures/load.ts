import { UploadError } from '../../errors.ts'
import { once } from '../../once.ts'
import { importOptional } from '../optional.ts'

export type SharpModule = typeof import('sharp').default

/** sharp, without its cache. @throws UploadError `delivery_failed` when it is not installed */
export const loadSharp = once(async (): Promise<SharpModule> => {
  const sharp = await loadLibrary('sharp', async () => (await import('sharp')).default)
  sharp.cache(false)
  sharp.concurrency(1)
  return sharp
})

/** A package that pictures need. @throws UploadError `delivery_failed` when it is not installed */
export async function loadLibrary<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await importOptional(name, load)
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    const { message, cause } = error
    throw new UploadError('delivery_failed', `Pictures can't be changed here: ${message}.`, { cause })
  }
}
