import { spawn } from 'node:child_process'

/**
 * How to start a program that `killTree` is to end: in a process group of its own. Windows has none, and opens a console for a
 * detached child.
 */
export function inOwnTree(platform: NodeJS.Platform = process.platform) {
  return { detached: platform !== 'win32', windowsHide: true }
}

/**
 * Ends a program at once with all that it started, which would hold its pipes open. On Windows `taskkill` does, by who started
 * whom: https://learn.microsoft.com/windows-server/administration/windows-commands/taskkill
 *
 * @param pid undefined: it was never started
 */
export function killTree(
  pid: number | undefined,
  { platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process,
): void {
  if (pid === undefined) return
  if (platform === 'win32')
    spawn('taskkill', ['/pid', String(pid), '/t', '/f'], { env, stdio: 'ignore', windowsHide: true })
      .on('error', () => kill(pid))
      .unref()
  else kill(-pid)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}
