/** How often it is looked at: a decompression bomb takes half a gigabyte in a second. */
const PAUSE_MS = 50

/** For all that is not pixels: headers with their metadata. A photo of 80 MB that is nearly nothing else takes 400. */
const BESIDE_PIXELS_BYTES = 512 * 1024 * 1024

/** AVIF takes 40, a watermark all over a picture that is turned 75. */
const PER_PIXEL_BYTES = 96

let mostBytes = Number.POSITIVE_INFINITY

/**
 * Calls `exceeded` when this process takes more memory, from now on, than a picture of no pixels may.
 *
 * @returns what ends that
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

/** Lets the picture at work take as much more as so many pixels need. */
export function allowPixels(pixels: number): void {
  mostBytes += pixels * PER_PIXEL_BYTES
}
