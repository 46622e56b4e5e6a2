/** `. Did you mean "port"?` for the most similar name, or a list of all names if none is similar. */
export function suggest(given: string, known: readonly string[]): string {
  const near = suggestNear(given, known)
  return near === '' && known.length > 0 ? `. Available: ${known.join(', ')}` : near
}

/** The same, or an empty string if no name is similar. */
export function suggestNear(given: string, known: readonly string[]): string {
  const distances = known.map(name => distance(name.toLowerCase(), given.toLowerCase()))
  const least = Math.min(...distances)
  return least <= Math.min(2, given.length / 2) ? `. Did you mean "${known[distances.indexOf(least)]}"?` : ''
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
