/** Interval of the check, milliseconds. A decompression bomb can take half a gigabyte in a second. */
const PAUSE_MS = 50

/** Memory for everything but pixels, such as metadata. A photo of 80 MB that is mostly metadata takes 400 MB. */
const BESIDE_PIXELS_BYTES = 512 * 1024 * 1024

/** Bytes per pixel. AVIF takes 40. */
const PER_PIXEL_BYTES = 96

let mostBytes = Number.POSITIVE_INFINITY

/**
 * Calls `exceeded` if this process takes more memory, from now on, than is allowed for an image without pixels.
 *
 * @returns ends the check
 */
export function watchMemory(exceeded: () => void): () => void {
  mostBytes = process.memoryUsage.rss() + BESIDE_PIXELS_BYTES
  const timer = setInterval(() => {
    if (process.memoryUsage.rss() <= mostBytes) return
    clearInterval(timer)
    exceeded()
  }, PAUSE_MS)
  return () => clearInterval(timer)
}

/** Raises the limit by the memory for a number of pixels. */
export function allowPixels(pixels: number): void {
  mostBytes += pixels * PER_PIXEL_BYTES
}
