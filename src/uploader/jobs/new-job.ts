import { randomUUID } from 'node:crypto'

/**
 * A UUID of version 7: it begins with the time, so that the entries of one moment lie together in an index, and 74
 * random bits keep it from being guessed.
 */
export function newJobId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
