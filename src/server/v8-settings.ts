import { setFlagsFromString } from 'node:v8'

/** A container with less memory needs it for the uploads. */
const ROOMY_BYTES = 512 * 1024 * 1024

/**
 * Sets how much the heap of V8 may grow before V8 goes through all objects. By default it does so whenever the heap and the
 * memory outside of it, such as chunks, have grown by 8 MB in a server of this size: every 40 uploads of 100 KB. That takes up to
 * 20 % more processor time for an upload of 100 KB and 66 % more for one of 5 MB (bench/README.md).
 *
 * Called by the command that starts a server once it listens: with other flags than at its start, Node compiles those of its
 * modules that are loaded later instead of reading them from its cache. The V8 of a program that imports this package is its own.
 */
export function letHeapGrow(): void {
  if ((process.constrainedMemory() || Infinity) < ROOMY_BYTES) return
  setFlagsFromString('--heap-growing-percent=250')
}
