import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Variable of the environment by which a program and all that it starts are known. */
export const MARK = 'UPLOAD_RUN'

/**
 * How to start a program that `killTree` is to end: in a process group of its own. Windows has none, and opens a console for a
 * detached child.
 */
export function inOwnTree(platform: NodeJS.Platform = process.platform) {
  return { detached: platform !== 'win32', windowsHide: true }
}

/** Where to start a program of the system: Windows looks for it in that folder first, which may be anybody's. */
export function systemFolder({ platform, env }: Pick<NodeJS.Process, 'platform' | 'env'> = process) {
  return platform === 'win32' ? env['SYSTEMROOT'] : undefined
}

/**
 * Ends a program at once with all that it started, which would hold its pipes open. On Windows `taskkill` does, by who started
 * whom: https://learn.microsoft.com/windows-server/administration/windows-commands/taskkill
 *
 * @param pid undefined: it was never started
 * @param mark what `MARK` is in its environment; finds, on Linux, also what left the tree with a session of its own
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

/** Has a program and all that it started stand still, so that nothing more is started meanwhile. */
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
