import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

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

/**
 * A name for what belongs to this process, so that others can tell when it is gone: `host.pid.random`.
 *
 * @param scope the host by its name, or `SCOPE` where a wrong guess would do harm
 */
export function newOwner(scope: string = HOST): string {
  const owner = `${scope}.${process.pid}.${randomBytes(6).toString('hex')}`
  own.add(owner)
  return owner
}

/** Forgets a name when what it stands for has ended before the process. */
export function dropOwner(owner: string): void {
  own.delete(owner)
}

/** Reads a name made by `newOwner`. */
export function parseOwner(owner: string): { host: string; pid: number } | undefined {
  const match = /^([^.]+)\.(\d+)\.[0-9a-f]{12}$/.exec(owner)
  return match ? { host: match[1] as string, pid: Number(match[2]) } : undefined
}

/**
 * Whether the process behind a name has ended. One on this machine is asked for; it is gone, too, when it has the number
 * of this process, as it happens in containers. One on another machine is gone after `patienceMs` without a sign of life.
 */
export function isGone(owner: string, silentMs: number, patienceMs: number): boolean {
  const parsed = parseOwner(owner)
  if (!parsed || own.has(owner)) return false
  if (parsed.host !== HOST && parsed.host !== SCOPE) return silentMs > patienceMs
  return parsed.pid === process.pid || !isRunning(parsed.pid)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
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
