import { importOptional } from '../optional.ts'

export type SharpModule = typeof import('sharp').default

let loading: Promise<SharpModule> | undefined

/** sharp, without its cache. @throws UploadError `delivery_failed` when it is not installed */
export function loadSharp(): Promise<SharpModule> {
  loading ??= importOptional('sharp', async () => (await import('sharp')).default).then(sharp => {
    sharp.cache(false)
    sharp.concurrency(1)
    return sharp
  })
  loading.catch(() => {
    loading = undefined
  })
  return loading
}
