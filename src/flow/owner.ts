import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { systemCode } from '../errors.ts'

const HOST = hostname().replace(/[^A-Za-z0-9-]/g, '_') || 'host'

/**
 * Where process numbers mean something: this machine until it is started again and, in a container, this container.
 * Others may have the same host name and processes of the same numbers.
 */
export const SCOPE = `${HOST}-${hashOf(
  read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')),
  read(() => readlinkSync('/proc/self/ns/pid')),
)}`

/** Those of this very process: they carry its number, and are not gone. */
const own = new Set<string>()

/** Tells this process from later ones of the same number. Empty where the system does not say. */
const STARTED = readProcess(process.pid)?.started ?? ''

/**
 * A name for what belongs to this process, so that others can tell when it is gone: `host.pid-started.random`.
 *
 * @param scope the host by its name, or `SCOPE` where a wrong guess would do harm
 */
export function newOwner(scope: string = HOST): string {
  const owner = `${scope}.${process.pid}-${STARTED}.${randomBytes(6).toString('hex')}`
  own.add(owner)
  return owner
}

/** Forgets a name when what it stands for has ended before the process. */
export function dropOwner(owner: string): void {
  own.delete(owner)
}

/** Reads a name made by `newOwner`. */
export function parseOwner(owner: string): { host: string; pid: number; started: string } | undefined {
  const [, host, pid, started = ''] = /^([^.]+)\.(\d+)(?:-(\d*))?\.[0-9a-f]{12}$/.exec(owner) ?? []
  return host === undefined ? undefined : { host, pid: Number(pid), started }
}

/**
 * Whether the process behind a name has ended. One on this machine is asked for; it is gone, too, when it has the number
 * of this process, as it happens in containers. One on another machine is gone after `patienceMs` without a sign of life.
 */
export function isGone(owner: string, silentMs: number, patienceMs: number): boolean {
  const parsed = parseOwner(owner)
  if (!parsed || own.has(owner)) return false
  if (parsed.host !== HOST && parsed.host !== SCOPE) return silentMs > patienceMs
  return parsed.pid === process.pid || !isRunning(parsed.pid, parsed.started)
}

function isRunning(pid: number, started: string): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (systemCode(error) !== 'EPERM') return false
  }
  const found = readProcess(pid)
  if (found === undefined) return true
  return found.isAlive && (started === '' || found.started === started)
}

/** What Linux says of a process; undefined on other systems, and where it is hidden. */
function readProcess(pid: number): { isAlive: boolean; started: string } | undefined {
  // proc(5): number, name in parentheses, state, …; the 22nd field is the start in clock ticks since boot.
  const fields = read(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
    .replace(/^.*\) /s, '')
    .split(' ')
  const [state, started] = [fields[0], fields[19]]
  return started === undefined ? undefined : { isAlive: !/[ZX]/.test(state ?? ''), started }
}

function hashOf(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join()).digest('hex').slice(0, 8)
}

/** Systems other than Linux have no such files. */
function read(from: () => string): string {
  try {
    return from()
  } catch {
    return ''
  }
}
