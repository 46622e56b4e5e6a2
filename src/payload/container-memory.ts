const MIB = 1024 * 1024
/** Memory of the program without requests, in bytes. */
const IDLE_BYTES = 96 * MIB
/** Memory assumed to be left in a container that is too small, in bytes. */
const LEAST_BYTES = 8 * MIB

/**
 * Memory of a container for requests, in bytes. Infinity outside of a container.
 *
 * @param limit memory limit of the container, bytes
 */
export function memoryForRequests(limit: number = process.constrainedMemory() || Infinity): number {
  return Math.max(LEAST_BYTES, limit - IDLE_BYTES)
}
