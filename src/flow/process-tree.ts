import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

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
  else {
    const all = descendantsOf(pid)
    for (const one of [-pid, ...all]) kill(one)
  }
}

/**
 * Some programs put what they start into a group of its own, as `timeout` and `setsid` do. Linux says who started whom;
 * elsewhere nothing is found.
 */
function descendantsOf(pid: number): number[] {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap(thread =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
    return children.flatMap(child => [child, ...descendantsOf(child)])
  } catch {
    return [] // it has just ended
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}
