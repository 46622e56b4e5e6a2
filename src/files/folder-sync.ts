import { systemCode } from '../errors.ts'
import type { Held } from './held.ts'

/** Error codes of file systems that have no permissions, or can't sync a folder. */
export const UNSUPPORTED: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EINVAL'])

/**
 * Writes the entries of a folder to the disk. There is one sync of a folder at a time. All callers that arrive meanwhile share
 * the next one, because the current one may have begun before their entries existed.
 */
export function createFolderSync<T = Held>(sync: (folder: T) => Promise<void>) {
  const underWay = new Map<T, Promise<void>>()
  const next = new Map<T, Promise<void>>()

  function begin(folder: T): Promise<void> {
    next.delete(folder)
    const running = sync(folder).finally(() => underWay.delete(folder))
    underWay.set(folder, running)
    return running
  }

  return (folder: T): Promise<void> => {
    const current = underWay.get(folder)
    if (current === undefined) return begin(folder)
    const shared = next.get(folder) ?? current.catch(() => {}).then(() => begin(folder))
    next.set(folder, shared)
    return shared
  }
}

/** Writes the entries of a folder to the disk. Windows does that by itself. */
export async function syncFolder(folder: Held): Promise<void> {
  await folder.handle?.sync().catch(ignoreCodes(UNSUPPORTED))
}

export function ignoreCodes(codes: ReadonlySet<string>): (error: unknown) => undefined {
  return error => {
    if (!codes.has(systemCode(error) ?? '')) throw error
  }
}
