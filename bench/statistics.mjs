export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Half the distance between the quartiles, as a share of the median. */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const quartile = q => sorted[Math.round((sorted.length - 1) * q)]
  return (quartile(0.75) - quartile(0.25)) / 2 / median(values)
}
