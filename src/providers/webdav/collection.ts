import { inMemory } from '../../body.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { createKnownFolders, type KnownFolders } from '../shared/known-folders.ts'
import { createPathQueue } from '../shared/path-queue.ts'
import { joinRemote, probeName, resolveKey, temporaryPath } from '../shared/remote-path.ts'
import type { WebDavClient } from './client.ts'

/** Time limit for removing a temporary file, in milliseconds. */
const DISCARD_MS = 10_000

const DONE = [200, 201, 202, 204]
const GONE = [404, 410]

const PROBE = Buffer.from('upload-server')

export interface CollectionOptions {
  /** Folder below the base URL, starting with `/`. */
  readonly directory: string
  /** If true, objects are uploaded with a temporary name and then renamed, so that they appear atomically. */
  readonly atomic: boolean
}

export interface Collection {
  put(object: UploadObject, signal: AbortSignal): Promise<void>
  /** Stores a file, moves it and removes it. */
  probe(signal: AbortSignal): Promise<void>
  exists(key: string, signal: AbortSignal): Promise<boolean>
  remove(key: string, signal: AbortSignal): Promise<void>
}

export function createCollection(dav: WebDavClient, { directory, atomic }: CollectionOptions): Collection {
  const folders = createFolders(dav)
  /** Temporary files that could not be removed so far. */
  const left = new Set<string>()
  const runInOrder = createPathQueue()

  async function put(object: UploadObject, signal: AbortSignal): Promise<void> {
    const { folder, path } = resolveKey(directory, object.key)
    if (!atomic) return runInOrder(path, () => upload(folder, path, object, signal))
    void removeLeft()
    const temporary = temporaryPath(folder)
    let isUploaded = false
    try {
      await upload(folder, temporary, object, signal)
      isUploaded = true
      await runInOrder(path, () => move(dav, temporary, path, object, signal))
    } catch (error) {
      if (isUploaded || signal.aborted || mayHaveArrived(error)) await discard(temporary)
      throw error
    }
  }

  async function upload(
    folder: string,
    path: string,
    object: UploadObject,
    signal: AbortSignal,
  ): Promise<void> {
    const headers = { 'Content-Type': object.contentType }
    const send = (refusals: number[]) =>
      dav.request({ method: 'PUT', path, headers, body: object, accept: [...DONE, ...refusals] }, signal)
    await folders.inFolder(signal, folder, async isCached => {
      // nginx returns 500 if the folder was removed.
      const { status } = await send(isCached ? [...GONE, 409, 500] : [])
      return DONE.includes(status) || undefined
    })
    await verify(dav, path, object, signal)
  }

  async function discard(path: string): Promise<void> {
    await removeFile(dav, path, AbortSignal.timeout(DISCARD_MS)).catch(() => left.add(path))
  }

  async function removeLeft(): Promise<void> {
    const paths = [...left]
    left.clear()
    await Promise.all(paths.map(discard))
  }

  async function probe(signal: AbortSignal): Promise<void> {
    const path = atomic ? temporaryPath(directory) : joinRemote(directory, probeName())
    const moved = temporaryPath(directory)
    const object = { ...inMemory(PROBE), key: 'a probe file', contentType: 'text/plain', sha256: '' }
    try {
      await upload(directory, path, object, signal)
      if (atomic) await move(dav, path, moved, object, signal)
      await removeFile(dav, atomic ? moved : path, signal)
    } catch (error) {
      if (signal.aborted || mayHaveArrived(error))
        await Promise.all((atomic ? [path, moved] : [path]).map(discard))
      throw error
    }
  }

  return {
    put,
    probe,
    async exists(key, signal) {
      return (await dav.find(resolveKey(directory, key).path, signal)) !== undefined
    },
    async remove(key, signal) {
      const { path } = resolveKey(directory, key)
      // DELETE would remove a folder with its content.
      if ((await dav.find(path, signal))?.isFolder) throw inTheWay('folder', path)
      await removeFile(dav, path, signal)
      if (await dav.find(path, signal))
        throw new Problem('the server reported that it removed the file, but it still exists', {
          advice: 'Try again.',
        })
    },
  }
}

/** Looks up the object, because some servers return a success although they stored nothing, or only a part. */
async function verify(
  dav: WebDavClient,
  path: string,
  { size }: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const found = await dav.find(path, signal)
  if (found && (found.size ?? size) === size) return
  const what = found ? `stored ${found.size} of ${size} bytes` : 'did not store it'
  throw new Problem(`the server accepted the file, but ${what}`, { retryable: true })
}

/** Renames a file. `overwrite` would also replace a folder with its content, so it is used only if a file exists. */
async function move(
  dav: WebDavClient,
  from: string,
  to: string,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  if (!(await dav.move(from, to, { overwrite: false }, signal))) {
    if ((await dav.find(to, signal))?.isFolder) throw inTheWay('folder', to)
    await dav.move(from, to, { overwrite: true }, signal)
  }
  await verify(dav, to, object, signal)
}

async function removeFile(dav: WebDavClient, path: string, signal: AbortSignal): Promise<void> {
  await dav.request({ method: 'DELETE', path, accept: [...DONE, ...GONE] }, signal)
}

function createFolders(dav: WebDavClient): KnownFolders<AbortSignal> {
  return createKnownFolders<AbortSignal>({
    async isThere(signal, path) {
      return (await dav.find(`${path}/`, signal))?.isFolder ?? false
    },
    async make(signal, path) {
      // 405: the path exists. 400: the path is a file.
      const accept = [...DONE, 400, 405]
      const { status } = await dav.request({ method: 'MKCOL', path: `${path}/`, accept }, signal)
      if (DONE.includes(status)) return
      const found = await dav.find(path, signal)
      if (status === 400 || found?.isFolder === false) throw inTheWay('file', path)
    },
  })
}

/** Returns whether a failed upload may have left a file. Only a rejected one has left nothing. */
function mayHaveArrived(error: unknown): boolean {
  return !(error instanceof Problem) || error.retryable || error.code === 'insufficient_storage'
}

function inTheWay(what: 'file' | 'folder', path: string): Problem {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return new Problem(`a ${what} named "${name}" already exists`, {
    advice: `Change the key template, or remove the ${what}.`,
  })
}
