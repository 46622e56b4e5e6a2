import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Environment variable that marks a program and its child processes. */
export const MARK = 'UPLOAD_RUN'

/**
 * Options to start a program that `killTree` can end: in its own process group. Windows has no process groups, and opens a
 * console for a detached child.
 */
export function inOwnTree(platform: NodeJS.Platform = process.platform) {
  return { detached: platform !== 'win32', windowsHide: true }
}

/** Working directory for system programs. Windows searches it first for the program, so it must be a trusted folder. */
export function systemFolder({ platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process) {
  return platform === 'win32' ? env['SYSTEMROOT'] : undefined
}

/**
 * Kills a program and its child processes, which would keep its pipes open. On Windows, `taskkill` finds them by their
 * parents: https://learn.microsoft.com/windows-server/administration/windows-commands/taskkill
 *
 * @param pid undefined if it was never started
 * @param mark value of `MARK` in its environment. On Linux, it also finds processes that have left the process tree
 */
export function killTree(
  pid: number | undefined,
  { platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process,
  mark?: string,
): void {
  if (pid === undefined) return
  if (platform === 'win32')
    spawn('taskkill', ['/pid', String(pid), '/t', '/f'], {
      env,
      cwd: systemFolder({ platform, env }),
      stdio: 'ignore',
      windowsHide: true,
    })
      .on('error', () => send('SIGKILL', pid))
      .unref()
  else {
    const all = stop(pid, mark)
    for (const one of [-pid, ...all]) send('SIGKILL', one)
  }
}

/** Suspends a program and its child processes, so that they start no others. */
function stop(pid: number, mark: string | undefined): Set<number> {
  send('SIGSTOP', -pid)
  const stopped = new Set<number>()
  const find = () => [...descendantsOf(pid), ...(mark === undefined ? [] : findMarked(mark))]
  for (let fresh = find(); fresh.length > 0; ) {
    for (const one of fresh) {
      send('SIGSTOP', one)
      stopped.add(one)
    }
    fresh = find().filter(one => !stopped.has(one))
  }
  return stopped
}

/**
 * Finds child processes on Linux, because programs such as `timeout` and `setsid` start them in other process groups. Finds
 * nothing on other systems.
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

function findMarked(mark: string): number[] {
  try {
    const all = readdirSync('/proc').filter(name => /^\d+$/.test(name))
    return all.filter(one => hasMark(one, mark)).map(Number)
  } catch {
    return [] // no Linux
  }
}

function hasMark(pid: string, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${mark}\0`)
  } catch {
    return false // it has just ended, or is another user's
  }
}

function send(signal: NodeJS.Signals, pid: number): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}
