import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { onTestFinished, type TestContext } from 'vitest'

/** Mounts a file system of its own that everybody may write to, until the test is over. Needs Linux and root. */
export async function mountSmall(context: TestContext, path: string, size: string): Promise<void> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    const reason = 'needs Linux and root: a file system is mounted'
    if (process.env['CI'] === 'true') throw new Error(reason)
    context.skip(reason)
  }
  await mkdir(path, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=1777`, 'tmpfs', path])
  onTestFinished(() => void execFileSync('umount', ['-l', path]))
}
