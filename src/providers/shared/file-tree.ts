import { randomBytes } from 'node:crypto'
import { posix } from 'node:path'
import { inMemory } from '../../body.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { within } from '../../flow/time-limit.ts'
import { Problem } from '../../problem.ts'
import type { Target, UploadObject } from '../contract.ts'
import { findFileFault } from './check-key.ts'
import { createPathQueue } from './path-queue.ts'

/** Files on a server with folders. Paths start with `/`, or in the login folder, whose own path is `.`. */
export interface RemoteFiles {
  /** Creates a file, or replaces it. Its folder exists, unless someone has removed it. */
  write(path: string, object: UploadObject, signal: AbortSignal): Promise<void>
  /**
   * Returns the size of a file in bytes, `unknown` if the server does not report it, undefined if nothing has the path. Omit
   * it if responses to `write` and `rename` prove what was stored.
   */
  sizeOf?(path: string, signal: AbortSignal): Promise<number | 'unknown' | undefined>
  exists(path: string, signal: AbortSignal): Promise<boolean>
  isFolder(path: string, signal: AbortSignal): Promise<boolean>
  makeFolder(path: string, signal: AbortSignal): Promise<void>
  /** Replaces a file at `to`, but not a folder. */
  rename(from: string, to: string, signal: AbortSignal): Promise<void>
  /** Removes a file, but not a folder. A missing file counts as removed. */
  remove(path: string, signal: AbortSignal): Promise<void>
  /** Returns whether an error is the server's response to one of these, so that the connection is fine. */
  isRefusal(error: unknown): boolean
}

/** Runs work on the files: with the connection of all, or one of several. */
export type UseFiles = <T>(work: (files: RemoteFiles) => Promise<T>, signal: AbortSignal) => Promise<T>

export interface FileTreeOptions {
  /** Folder of the objects. */
  readonly directory: string
  /** If true, files are stored under a temporary name and renamed, so that no partial file is ever visible. */
  readonly atomic: boolean
  /** Returns the public URL of an object. */
  urlOf(key: string): string
  /** Explains the errors of the server, of storing a file or of something else. Default: they are problems already. */
  explain?(error: unknown, isStoring: boolean): unknown
  /** Closes the connections, after the work in progress. */
  disconnect?(): void
}

/** Maximum number of known folders. Then the list is cleared, because a key template can create a folder for each file. */
const MAX_FOLDERS = 10_000
/** Time limit for removing temporary files, and for work to end when the destination is closed, in milliseconds. */
const [TIDY_MS, CLOSE_MS] = [10_000, 3000]

/** Makes a target of a server with folders: it creates folders, verifies what was stored, and leaves no temporary file behind. */
export function createFileTree(use: UseFiles, options: FileTreeOptions): Target {
  const { directory, atomic, urlOf, explain, disconnect } = options
  const known = new Set<string>()
  /** Temporary files of failed uploads that have not been removed. */
  const leftovers = new Set<string>()
  const working = new Set<Promise<unknown>>()
  const inOrder = createPathQueue()
  const pathOf = (key: string) => posix.join(directory, key)

  async function ensureFolder(files: RemoteFiles, path: string, signal: AbortSignal): Promise<void> {
    if (path === '.' || path === '/' || known.has(path)) return
    if (!(await files.isFolder(path, signal))) {
      await ensureFolder(files, posix.dirname(path), signal)
      await files.makeFolder(path, signal).catch(async error => {
        // A concurrent upload may have created it.
        if (!files.isRefusal(error) || !(await files.isFolder(path, signal))) throw error
      })
    }
    if (known.size >= MAX_FOLDERS) known.clear()
    known.add(path)
  }

  async function write(files: RemoteFiles, path: string, object: UploadObject, signal: AbortSignal) {
    const folder = posix.dirname(path)
    const wasKnown = known.has(folder)
    await ensureFolder(files, folder, signal)
    await files.write(path, object, signal).catch(async error => {
      // Someone may have removed the folder.
      if (!wasKnown || !files.isRefusal(error) || (await files.isFolder(folder, signal))) throw error
      known.clear()
      await ensureFolder(files, folder, signal)
      await files.write(path, object, signal)
    })
    await verify(files, path, object, signal)
  }

  /** Runs work, which may leave a file at the path if it fails. */
  async function orTidy(path: string, work: () => Promise<void>): Promise<void> {
    await work().catch(error => {
      leftovers.add(path)
      throw error
    })
  }

  function store(files: RemoteFiles, path: string, object: UploadObject, signal: AbortSignal): Promise<void> {
    if (!atomic) return inOrder(path, () => write(files, path, object, signal))
    const temporary = posix.join(posix.dirname(path), `.${uniqueName()}`)
    return orTidy(temporary, async () => {
      await write(files, temporary, object, signal)
      signal.throwIfAborted()
      await inOrder(path, () => files.rename(temporary, path, signal))
      await verify(files, path, object, signal)
    })
  }

  /** Removes leftovers. What fails because of the connection is tried again after the next work. */
  async function tidy(files: RemoteFiles, signal: AbortSignal): Promise<void> {
    for (const path of leftovers) {
      // If the server refuses it, a retry would not help.
      await files.remove(path, signal).catch(error => {
        if (!files.isRefusal(error)) throw error
      })
      leftovers.delete(path)
    }
  }

  function keep(work: Promise<unknown>): void {
    const ended = work.catch(() => {}).finally(() => working.delete(ended))
    working.add(ended)
  }

  /** The caller does not wait for work that it has aborted. */
  async function run<T>(work: (files: RemoteFiles) => Promise<T>, signal: AbortSignal, isStoring = false) {
    signal.throwIfAborted()
    let isConnected = false
    const connected = async (files: RemoteFiles) => {
      isConnected = true
      signal.throwIfAborted()
      return work(files)
    }
    const done = use(connected, signal)
      .catch((error: unknown) => {
        throw explain?.(error, isStoring) ?? error
      })
      .finally(() => {
        if (!isConnected || leftovers.size === 0) return
        const tidying = AbortSignal.timeout(TIDY_MS)
        keep(use(files => tidy(files, tidying), tidying))
      })
    keep(done)
    return orAborted(done, signal)
  }

  return {
    traits: { keyFault: findFileFault },
    async put(object, signal) {
      await run(files => store(files, pathOf(object.key), object, signal), signal, true)
      return { url: urlOf(object.key) }
    },
    exists: (key, signal) => run(files => files.exists(pathOf(key), signal), signal),
    remove: (key, signal) => run(files => files.remove(pathOf(key), signal), signal),
    check(signal) {
      // Without `atomic`, the server may allow no names with a leading dot.
      const path = posix.join(directory, `${atomic ? '.' : ''}${uniqueName()}`)
      const probe = (files: RemoteFiles) =>
        orTidy(path, async () => {
          await write(files, path, PROBE, signal)
          await files.remove(path, signal)
        })
      return run(probe, signal, true)
    },
    async close() {
      const settle = async () => {
        while (working.size > 0) await Promise.all(working)
      }
      await within(settle(), CLOSE_MS, () => new Error('still working')).catch(() => {})
      disconnect?.()
    },
  }
}

/** Some servers report success although they stored nothing, or only a part. */
async function verify({ sizeOf }: RemoteFiles, path: string, { size }: UploadObject, signal: AbortSignal) {
  const found = sizeOf ? await sizeOf(path, signal) : size
  if (found === size || found === 'unknown') return
  const what = found === undefined ? 'did not store it' : `stored ${found} of ${size} bytes`
  throw new Problem(`the server accepted the file, but ${what}`, { advice: 'Try again.', retryable: true })
}

const PROBE: UploadObject = {
  ...inMemory(Buffer.from('upload-server')),
  key: 'a probe file',
  contentType: 'text/plain',
  sha256: '',
}

/** Object keys can't have it with a leading dot, because no segment of theirs starts with one. */
function uniqueName(): string {
  return `upload-server-${randomBytes(8).toString('hex')}`
}

/** Returns the number with which a server of FTP or SFTP rejected a request. Undefined for other errors. */
export function responseCode(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined
}

/** The problem of a folder that has the name of a file, or the other way round. */
export function inTheWay(what: 'file' | 'folder', path: string): Problem {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return new Problem(`a ${what} named "${name}" already exists`, {
    advice: `Change the key template, or remove the ${what}.`,
  })
}
