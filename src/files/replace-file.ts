import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../errors.ts'
import { holdFolder } from './held.ts'
import { makePath } from './make-path.ts'
import { fenceOf, findWayOut } from './way-out.ts'

const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0 } = constants

/**
 * Replaces a file by a text, completely or not at all. A symlink is neither followed nor replaced: in a cloned
 * folder, others decide where it leads.
 *
 * @param path absolute
 * @throws an error of the system; Error with a reason for a symlink
 */
export async function replaceFile(path: string, text: string, cwd: string): Promise<void> {
  const fence = fenceOf(path, cwd)
  // Its parent is outside of the fence, which is not what is wrong with it.
  if (path === fence) throw new Error('it is a directory')
  const folder = dirname(path)
  const check = async (real: string) => {
    const fault = fence && (await findWayOut(folder, real, fence))
    if (fault) throw new Error(fault)
  }
  await check(await realAncestor(folder))
  await makePath(folder, 0o777)
  const held = await holdFolder(folder, 'follow')
  try {
    await check(held.real)
    const file = join(held.path, basename(path))
    const status = await lstat(file).catch(ignoreMissing)
    if (status?.isSymbolicLink()) throw new Error('it is a symlink')
    // Pipes and devices such as /dev/null can't be replaced by a rename, so they are written directly.
    if (status && !status.isFile()) return await writeFile(file, text)
    const beside = join(held.path, `.${randomUUID()}`)
    try {
      await writeFile(beside, text, { flag: 'wx', ...(status && { mode: status.mode & 0o777 }) })
      await rename(beside, file)
    } finally {
      await rm(beside, { force: true })
    }
  } finally {
    await held.close()
  }
}

/** Appends to a file, which must not be a symlink. @throws an error of the system, `ELOOP` for one */
export async function appendToFile(path: string, text: string): Promise<void> {
  const file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW)
  try {
    await file.appendFile(text)
  } finally {
    await file.close()
  }
}

/** The nearest existing folder of a path, and the folders that are missing below it. */
async function realAncestor(folder: string): Promise<string> {
  const real = await realpath(folder).catch(ignoreMissing)
  if (real !== undefined) return real
  // A broken symlink would make the folder at its target.
  if ((await lstat(folder).catch(ignoreMissing)) !== undefined) throw new Error('it is behind a symlink')
  return join(await realAncestor(dirname(folder)), basename(folder))
}

function ignoreMissing(error: unknown): undefined {
  if (systemCode(error) !== 'ENOENT') throw error
}
