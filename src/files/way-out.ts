import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { isBelowAny } from './own-paths.ts'

/**
 * The folder that symlinks must not lead out of, for a name that somebody else may have made: the working folder, or the one
 * that its `..` lead to. Undefined: an absolute path elsewhere, which only the user can mean.
 */
export function fenceOf(name: string, cwd: string): string | undefined {
  const path = resolve(cwd, name)
  let fence = cwd
  while (!isBelowAny(path, [fence])) {
    const above = dirname(fence)
    if (above === fence) return undefined // another drive of Windows
    fence = above
  }
  return isAbsolute(name) && fence !== cwd ? undefined : fence
}

/**
 * Why what was opened in the place of a path is not used: a symlink led out of the fence, or to what begins with a dot
 * (`.git`, `.env`) and was not named so.
 *
 * @param real where the opened file lies
 */
export async function findWayOut(path: string, real: string, fence: string): Promise<string | undefined> {
  const realFence = await realpath(fence)
  if (!isBelowAny(real, [realFence]))
    return `it is a symlink that leads out of ${fence}: use ${real} instead if you mean that file`
  const named = new Set(relative(fence, path).split(sep))
  const hidden = relative(realFence, real)
    .split(sep)
    .find(name => name.startsWith('.') && !named.has(name))
  return hidden && `it is a symlink to ${hidden}: hidden files are not uploaded through symlinks`
}
