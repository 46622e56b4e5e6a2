import { createHash } from 'node:crypto'
import type { Input } from './input.ts'

/**
 * Hash of what a request asks for: its destination, its options and its inputs. A file counts by its name and bytes, even if
 * it was not stored. Undefined if some bytes are unknown, because another request could have the same hash then.
 *
 * @param options those that are part of the fingerprint, always in the same order
 */
export function fingerprintOf(
  destination: string,
  options: object,
  inputs: readonly Input[],
): string | undefined {
  const isKnown = (input: Input) => input.kind !== 'form' || input.payload.sha256 !== undefined
  if (!inputs.every(isKnown)) return undefined
  const text = JSON.stringify(options)
  const asked = inputs.map(input =>
    input.kind === 'form' ? [input.kind, input.origin, input.payload.sha256] : [input.kind, input.origin],
  )
  return createHash('sha256')
    .update(JSON.stringify([text === '{}' ? destination : destination + text, asked]))
    .digest('hex')
}
