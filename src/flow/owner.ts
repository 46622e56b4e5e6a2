import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { systemCode } from '../errors.ts'

const HOST = hostname().replace(/[^A-Za-z0-9-]/g, '_') || 'host'

/**
 * Where process IDs are unique: this machine until its restart and, in a container, this container. Others may have the same
 * hostname and the same process IDs.
 */
export const SCOPE = `${HOST}-${hashOf(
  read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')),
  read(() => readlinkSync('/proc/self/ns/pid')),
)}`

/** Names of this process. They are never gone. */
const own = new Set<string>()

/**
 * Returns a name for resources of this process, `host.pid.random`. Others can detect by it that the process has ended.
 *
 * @param scope the hostname, or `SCOPE` if a wrong result would do harm
 */
export function newOwner(scope: string = HOST): string {
  const owner = `${scope}.${process.pid}.${randomBytes(6).toString('hex')}`
  own.add(owner)
  return owner
}

/** Drops a name whose resource has ended before the process. */
export function dropOwner(owner: string): void {
  own.delete(owner)
}

/** Parses a name made by `newOwner`. */
export function parseOwner(owner: string): { host: string; pid: number } | undefined {
  const [, host, pid] = /^([^.]+)\.(\d+)\.[0-9a-f]{12}$/.exec(owner) ?? []
  return host === undefined ? undefined : { host, pid: Number(pid) }
}

/**
 * Whether the process of a name has ended. A process of this machine is looked up. If it has the ID of this process, as in
 * restarted containers, it has ended. A process of another machine is gone after `patienceMs` without a heartbeat.
 */
export function isGone(owner: string, silentMs: number, patienceMs: number): boolean {
  const parsed = parseOwner(owner)
  if (!parsed || own.has(owner)) return false
  if (parsed.host !== HOST && parsed.host !== SCOPE) return silentMs > patienceMs
  return parsed.pid === process.pid || !isRunning(parsed.pid)
}

/** Another process may have got the ID of one that has ended. Then it counts as running. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) === 'EPERM'
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
