import { access, constants, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemCode } from '../errors.ts'
import type { Terminal } from './terminal.ts'

/** @returns where an argument leads, and why that can't be sent, in the words of somebody who sits in front of it */
export async function findFile(
  name: string,
  { cwd, platform }: Pick<Terminal, 'cwd' | 'platform'>,
): Promise<{ path: string; fault: string | undefined }> {
  const path = pathOf(name, cwd)
  return { path, fault: await findFault(path, name, platform) }
}

/** Of standard input without a byte: mostly the command before the pipe has failed. */
export const NOTHING_ON_STDIN =
  'nothing came on standard input. Did the command before it fail? An empty file can be sent by its name'

/** Some programs hand over `file:` addresses. */
function pathOf(name: string, cwd: string): string {
  try {
    return /^file:\/\//i.test(name) ? fileURLToPath(name) : resolve(cwd, name)
  } catch {
    return resolve(cwd, name) // an address of another machine
  }
}

async function findFault(path: string, name: string, platform: NodeJS.Platform): Promise<string | undefined> {
  try {
    const status = await stat(path)
    if (status.isDirectory()) return 'it is a folder: name the files in it'
    if (!status.isFile()) return 'it is no regular file'
    await access(path, constants.R_OK)
    return undefined
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return `there is no such file${hintFor(name, platform)}`
    return code === 'EACCES' || code === 'EPERM'
      ? 'you have no permission to read it'
      : (error as Error).message
  }
}

/** What people get wrong about names. */
function hintFor(name: string, platform: NodeJS.Platform): string {
  if (/^(["']).*\1$/s.test(name)) return ': leave out the quotes around its name'
  if (/^~[\\/]/.test(name)) return ': ~ is your home folder only where the shell sees no quotes'
  if (/^(?:[a-z]:|\\)\\/i.test(name) && platform !== 'win32') return ': that is a path of Windows'
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(name)) return ': addresses begin with http:// or https://'
  return ''
}
