import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemCode } from '../errors.ts'

/**
 * Makes a folder and its missing parents. `mkdir` with `recursive` never ends, and keeps a thread busy, in a folder where
 * the system allows no new ones, such as /proc (Node 20.20).
 *
 * @returns the outermost new folder, or undefined if the folder existed
 * @throws an error of the system; `EACCES` if no folder can be made there
 */
export async function makePath(path: string, mode: number): Promise<string | undefined> {
  try {
    return await makeFolder(path, mode)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || dirname(path) === path) throw error
  }
  const outermost = await makePath(dirname(path), mode)
  const made = await makeFolder(path, mode).catch(error => {
    if (systemCode(error) !== 'ENOENT') throw error
    throw Object.assign(new Error(`EACCES: could not create a folder in "${dirname(path)}"`), {
      code: 'EACCES',
    })
  })
  return outermost ?? made
}

async function makeFolder(path: string, mode: number): Promise<string | undefined> {
  try {
    await mkdir(path, mode)
    return path
  } catch (error) {
    if (systemCode(error) !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error
    return undefined
  }
}
