import { createHash } from 'node:crypto'
import { existsSync, type FSWatcher, readFileSync, readlinkSync, statSync, watch } from 'node:fs'
import { join, parse, relative, resolve, sep } from 'node:path'
import { systemCode } from '../errors.ts'

/** Files are taken when they have stood still for so long: editors and copies write them piece by piece. */
const STILL_MS = 200
const MOST_LINKS = 40

export interface FileWatch {
  /** Other files from now on; none: nothing is watched. */
  follow(files: readonly string[]): void
}

/** What tells one content of some files from another. */
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
 * Calls back when the content of files has changed and stands still again. Directories are watched, not files: editors
 * replace a file, and Kubernetes a link on the way to it.
 *
 * @param seen fingerprint of the files as they are known
 * @param warn hears when the system can't tell of changes
 */
export function watchFiles(
  files: readonly string[],
  seen: string,
  onChange: () => void,
  warn: (reason: string) => void,
): FileWatch {
  let known = seen
  let candidate: string | undefined
  let watchers: FSWatcher[] = []
  let isDue = false

  /** Anew each time: what is watched is the directory that was there, not the one that has taken its place. */
  function watchDirectories(): void {
    for (const watcher of watchers) watcher.close()
    watchers = [...new Set(files.flatMap(file => directoriesOf(file)))].flatMap(directory => {
      try {
        return watch(directory, { persistent: false }, lookSoon).on('error', lookSoon)
      } catch (error) {
        warn(`${directory} can't be watched (${systemCode(error)})`)
        return []
      }
    })
  }

  function lookSoon(): void {
    if (isDue) return
    isDue = true
    setTimeout(look, STILL_MS).unref()
  }

  function look(): void {
    isDue = false
    watchDirectories()
    const now = fingerprint(files)
    if (now === known) candidate = undefined
    else if (now !== candidate) {
      candidate = now
      lookSoon()
    } else {
      known = now
      candidate = undefined
      onChange()
    }
  }

  watchDirectories()
  // What has changed since the files were read.
  if (fingerprint(files) !== known) lookSoon()
  return {
    follow(others) {
      if (others.join('\0') === files.join('\0')) return
      files = others
      known = fingerprint(files)
      watchDirectories()
    },
  }
}

/** Where something must happen for a path to lead to other content: around the file and every link on the way to it. */
function directoriesOf(path: string, mostLinks = MOST_LINKS): string[] {
  const { root } = parse(path)
  const names = relative(root, path).split(sep)
  let directory = root
  for (const [index, name] of names.entries()) {
    const next = join(directory, name)
    const target = mostLinks > 0 ? linkTarget(next) : undefined
    if (target !== undefined) {
      const meant = resolve(directory, target, ...names.slice(index + 1))
      return [directory, ...directoriesOf(meant, mostLinks - 1)]
    }
    if (index === names.length - 1 || !existsSync(next)) break
    directory = next
  }
  return [directory]
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
