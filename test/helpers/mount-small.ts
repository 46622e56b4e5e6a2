import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { onTestFinished, type TestContext } from 'vitest'
import { needsLinux, needsRoot } from './needs.ts'

/**
 * Mounts a file system of its own that everybody may write to, until the test is over. Needs Linux and root.
 *
 * @param size such as `2m`, or `2m,ro` for one that nobody can write to
 */
export async function mountSmall(context: TestContext, path: string, size: string): Promise<void> {
  needsLinux(context, 'a tmpfs is mounted')
  needsRoot(context, 'a tmpfs is mounted')
  await mkdir(path, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=1777`, 'tmpfs', path])
  onTestFinished(() => void execFileSync('umount', ['-l', path]))
}
