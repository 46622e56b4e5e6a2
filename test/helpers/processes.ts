import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

export interface RunningProcess {
  readonly pid: number
  readonly parent: number
  readonly args: string
}

/** The processes of this machine. One that has ended and waits for its parent to notice counts as ended. */
export function listProcesses(): RunningProcess[] {
  return process.platform === 'linux' ? fromProc() : fromPs()
}

export function isRunning(pid: number): boolean {
  return listProcesses().some(one => one.pid === pid)
}

/** By /proc, since `ps` is a package that a small Linux has not. */
function fromProc(): RunningProcess[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [, state = '', parent] = /\) (\S) (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
        if ('ZX'.includes(state)) return []
        const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return [{ pid: Number(pid), parent: Number(parent), args }]
      } catch {
        return [] // it has ended since
      }
    })
}

function fromPs(): RunningProcess[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,stat=,args='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap(line => {
    const [, pid, parent, state = 'Z', args = ''] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
    return state.startsWith('Z') ? [] : [{ pid: Number(pid), parent: Number(parent), args }]
  })
}
