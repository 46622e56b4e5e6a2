import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize, parse, relative, resolve, sep } from 'node:path'
import { isBelowAny } from './own-paths.ts'

/**
 * The folder that symlinks must not lead out of, for a name that may come from others: the working directory, or the
 * folder that the `..` of the name lead to. Undefined for an absolute path elsewhere, which only the user can have typed.
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
 * Why an opened file is rejected: a symlink led out of the fence, or to a hidden name (`.git`, `.env`) that the path does
 * not contain. Undefined if it is accepted.
 *
 * @param real path of the opened file
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

/** The real path of the deepest existing folder of a path. The search begins at the root, so that long paths are not slow. */
export async function realAncestor(path: string): Promise<string> {
  const { root } = parse(path)
  let deepest = root
  let folder = root
  for (const name of dirname(normalize(path)).slice(root.length).split(sep)) {
    folder = join(folder, name)
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined) break
    deepest = real
  }
  return deepest
}
