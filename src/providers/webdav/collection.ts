import { Readable } from 'node:stream'
import { UploadError } from '../../errors.ts'
import type { UploadObject } from '../contract.ts'
import { lendBody } from '../shared/body.ts'
import { createKnownFolders, type KnownFolders } from '../shared/known-folders.ts'
import { resolveKey, temporaryPath } from '../shared/remote-path.ts'
import { createPathTurns } from '../shared/turns.ts'
import type { WebDavClient } from './client.ts'

/** How long removing a temporary file may last. */
const DISCARD_MS = 10_000

const DONE = [200, 201, 202, 204]
const GONE = [404, 410]

const PROBE = Buffer.from('upload-server')

export interface CollectionOptions {
  /** Folder below the base address, starting with `/`. */
  readonly directory: string
  /** Upload under a temporary name and move, so that an object is there whole or not at all. */
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
  /** Temporary files that could not be removed yet. */
  const left = new Set<string>()
  const inTurn = createPathTurns()

  async function put(object: UploadObject, signal: AbortSignal): Promise<void> {
    const { folder, path } = resolveKey(directory, object.key)
    if (!atomic) return inTurn(path, () => upload(folder, path, object, signal))
    void removeLeft()
    const temporary = temporaryPath(folder)
    let isUploaded = false
    try {
      await upload(folder, temporary, object, signal)
      isUploaded = true
      await inTurn(path, () => move(dav, temporary, path, object, signal))
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
    const { contentType, size } = object
    const headers = { 'Content-Type': contentType, 'Content-Length': String(size) }
    const body = (ending: AbortSignal) => lendBody(object, ending)
    const send = (refusals: number[]) =>
      dav.request({ method: 'PUT', path, headers, body, accept: [...DONE, ...refusals] }, signal)
    await folders.inFolder(signal, folder, async isRemembered => {
      // Where the folder is gone, nginx says 500.
      const { status } = await send(isRemembered ? [...GONE, 409, 500] : [])
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
    const [path, moved] = [temporaryPath(directory), temporaryPath(directory)]
    const stream = () => Readable.from([PROBE], { objectMode: false })
    const known = { key: 'a probe file', size: PROBE.length, contentType: 'text/plain', sha256: '' }
    const object = { ...known, stream, bytes: async () => PROBE }
    try {
      await upload(directory, path, object, signal)
      if (atomic) await move(dav, path, moved, object, signal)
      await removeFile(dav, atomic ? moved : path, signal)
    } catch (error) {
      if (signal.aborted || mayHaveArrived(error)) await Promise.all([path, moved].map(discard))
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
      // DELETE takes a folder with all that is in it.
      if ((await dav.find(path, signal))?.isFolder) throw inTheWay('folder', path)
      await removeFile(dav, path, signal)
      if (await dav.find(path, signal))
        throw new UploadError(
          'delivery_failed',
          `The server reported that it removed "${key}", but the file still exists. Try again.`,
        )
    },
  }
}

/** There are servers that say yes and store nothing, or less. */
async function verify(
  dav: WebDavClient,
  path: string,
  { key, size }: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const found = await dav.find(path, signal)
  if (found && (found.size ?? size) === size) return
  const what = found ? `stored ${found.size} of ${size} bytes` : 'did not store it'
  const message = `The server accepted "${key}", but ${what}. Try again.`
  throw new UploadError('delivery_failed', message, { retryable: true })
}

/** With `overwrite` a folder would be replaced too, with all that is in it: so it is asked for only where a file is. */
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
      // 405: something is there. 400: that is a file.
      const accept = [...DONE, 400, 405]
      const { status } = await dav.request({ method: 'MKCOL', path: `${path}/`, accept }, signal)
      if (DONE.includes(status)) return
      const found = await dav.find(path, signal)
      if (status === 400 || found?.isFolder === false) throw inTheWay('file', path)
    },
  })
}

/** A refusal leaves nothing behind. Everything else may. */
function mayHaveArrived(error: unknown): boolean {
  return !(error instanceof UploadError) || error.retryable || error.code === 'insufficient_storage'
}

function inTheWay(what: 'file' | 'folder', path: string): UploadError {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const message = `A ${what} named "${name}" already exists. Change the key template, or remove the ${what}.`
  return new UploadError('delivery_failed', message)
}
