const MIB = 1024 * 1024
/** What the program takes without requests, bytes. */
const IDLE_BYTES = 96 * MIB
/** What counts as left in a container that is too small, bytes. */
const LEAST_BYTES = 8 * MIB

/**
 * What a container has for requests, bytes. Infinity outside of a container.
 *
 * @param limit memory limit of the container, bytes
 */
export function memoryForRequests(limit: number = process.constrainedMemory() || Infinity): number {
  return Math.max(LEAST_BYTES, limit - IDLE_BYTES)
}
