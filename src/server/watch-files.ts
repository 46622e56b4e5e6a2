import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { systemCode } from '../errors.ts'

/** Time between two looks at the files. A change is taken at the second look, because editors write files piece by piece. */
const LOOK_MS = 1000

export interface FileWatch {
  /** Other files from now on; none: nothing is watched. */
  follow(files: readonly string[]): void
}

/** Fingerprint of the contents of some files. */
export function fingerprint(files: readonly string[]): string {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(contentOf(file)).update('\0')
  return hash.digest('base64')
}

/** Reading anything but a regular file might wait for ever. */
function contentOf(file: string): Buffer | string {
  try {
    return statSync(file).isFile() ? readFileSync(file) : ''
  } catch (error) {
    return systemCode(error) ?? ''
  }
}

/**
 * Calls back when the content of files has changed and no longer changes. The files are read again and again: that works on
 * every file system, and for links that Kubernetes swaps.
 *
 * @param seen fingerprint of the files as they are known
 */
export function watchFiles(files: readonly string[], seen: string, onChange: () => void): FileWatch {
  let known = seen
  let candidate: string | undefined
  setInterval(() => {
    const now = fingerprint(files)
    if (now === known || now !== candidate) {
      candidate = now
      return
    }
    known = now
    onChange()
  }, LOOK_MS).unref()
  return {
    follow(others) {
      if (others.join('\0') === files.join('\0')) return
      files = others
      known = fingerprint(files)
    },
  }
}
