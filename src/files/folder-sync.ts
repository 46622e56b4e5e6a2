import { systemCode } from '../errors.ts'
import type { Held } from './held.ts'

/** Error codes of file systems that have no permissions, or can't sync a folder. */
export const UNSUPPORTED: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EINVAL'])

/** Writes the entries of a folder to the disk. Windows does that automatically. */
export async function syncFolder(folder: Held): Promise<void> {
  await folder.handle?.sync().catch(ignoreCodes(UNSUPPORTED))
}

export function ignoreCodes(codes: ReadonlySet<string>): (error: unknown) => undefined {
  return error => {
    if (!codes.has(systemCode(error) ?? '')) throw error
  }
}
