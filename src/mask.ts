/** Text with every secret in it replaced. */
export type Mask = (text: string) => string

/** Shorter secrets would turn up in innocent words; they are kept out of the log by never being written to it. */
const SHORTEST = 4

/**
 * Masks secrets by their value, in the spellings they take on their way: as they are, inside JSON, percent-encoded, as
 * part of a form, and in base64 as the last part of a Basic authorization.
 */
export function createMask(secrets: readonly string[]): Mask {
  const spellings = new Set<string>()
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue
    spellings.add(secret)
    spellings.add(JSON.stringify(secret).slice(1, -1))
    spellings.add(encodeURIComponent(secret.toWellFormed()))
    spellings.add(new URLSearchParams([['', secret]]).toString().slice(1))
    // The first characters of a base64 text depend on what stands before; the middle shows at one of three offsets.
    for (const shift of [0, 1, 2]) {
      const inner = Buffer.from(' '.repeat(shift) + secret).toString('base64')
      const known = inner.slice(shift === 0 ? 0 : 4).replace(/.{0,2}={0,2}$/, '')
      if (known.length >= 8) spellings.add(known)
    }
  }
  if (spellings.size === 0) return text => text
  const longestFirst = [...spellings].sort((a, b) => b.length - a.length)
  const pattern = new RegExp(
    longestFirst.map(text => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'),
    'g',
  )
  return text => text.replace(pattern, '[secret]')
}
