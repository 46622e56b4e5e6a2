import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasProgram } from '../helpers/needs.ts'

const START_MS = 45_000
const STOP_MS = 3000

export interface Daemon {
  /** What it has printed so far. */
  output(): string
  /** Ends it, with its sessions, and waits until it is gone. Safe to call twice. */
  stop(): Promise<void>
  /** Ends its sessions without a word to whoever is connected. */
  killSessions(): void
}

/**
 * Starts a server in the foreground and waits until it takes connections on a port of 127.0.0.1. It does not outlive
 * this process.
 *
 * @param account run it as somebody else; for root only
 */
export async function startDaemon(
  program: string,
  args: readonly string[],
  { port, account }: { port: number; account?: { uid: number; gid: number } },
): Promise<Daemon> {
  const env = { PATH: `${process.env['PATH']}:/usr/sbin:/sbin`, LANG: 'C.UTF-8' }
  const isSomebodyElse = account !== undefined && account.uid !== userInfo().uid
  // The kernel of Linux ends it with this process, also when that is killed and gets to do nothing itself.
  const watched = hasProgram('setpriv') ? ['setpriv', '--pdeathsig', 'KILL', '--', program] : [program]
  const [first = program, ...before] = watched
  const child = spawn(first, [...before, ...args], {
    env,
    cwd: '/', // somebody else may not enter the folder of this project
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isSomebodyElse && { uid: account.uid, gid: account.gid }),
  })
  const kill = () => {
    killAll(listDescendants(child.pid))
    child.kill('SIGKILL')
  }
  process.once('exit', kill)
  child.once('close', () => process.removeListener('exit', kill))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-20_000)
    })
  }
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${program} ended with status ${code} instead of listening: ${printed.slice(-1000)}`)
  })
  failed.catch(() => {})
  try {
    await Promise.race([waitForPort(port), failed])
  } catch (error) {
    await stop(child)
    throw error
  }
  return {
    output: () => printed,
    stop: () => stop(child),
    killSessions: () => killAll(listDescendants(child.pid)),
  }
}

async function waitForPort(port: number): Promise<void> {
  for (const end = Date.now() + START_MS; Date.now() < end; ) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch {
      await sleep(20)
    } finally {
      socket.destroy()
    }
  }
  throw new Error(`nobody listens on port ${port} after ${START_MS} ms`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, 'exit')
  killAll(listDescendants(child.pid))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(timer)
}

/** Servers fork a process for each session and give it a session id of its own, so no signal reaches them all. */
function listDescendants(pid: number | undefined): number[] {
  const children = readdirSync('/proc').filter(entry => /^\d+$/.test(entry) && parentOf(entry) === pid)
  return children.map(Number).flatMap(child => [...listDescendants(child), child])
}

/** The fourth field of /proc/PID/stat; the second may hold blanks and parentheses. */
function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
}
