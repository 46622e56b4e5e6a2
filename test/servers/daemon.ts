import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasProgram } from '../helpers/needs.ts'

const START_MS = 45_000
const STOP_MS = 3000

export interface DaemonOptions {
  /** It is ready when it takes connections on this port of 127.0.0.1… */
  readonly port?: number
  /** …or when it has printed this. */
  readonly until?: RegExp
  /** Run it as somebody else; for root only. */
  readonly account?: { readonly uid: number; readonly gid: number } | undefined
  /** Its environment beside `PATH` and `LANG`. */
  readonly env?: NodeJS.ProcessEnv
  /** The signal by which it ends its sessions itself. Default: they are killed. */
  readonly endsBy?: NodeJS.Signals
}

export interface Daemon {
  readonly pid: number
  /** What it has printed so far. */
  output(): string
  /** Ends it, with its sessions, and waits until it is gone. Safe to call twice. */
  stop(): Promise<void>
  /** Ends its sessions without a word to whoever is connected. */
  killSessions(): void
}

/** Starts a program in the foreground and waits until it is ready. It does not outlive this process. */
export async function startDaemon(
  program: string,
  args: readonly string[],
  { port, until, account, env, endsBy }: DaemonOptions,
): Promise<Daemon> {
  const isSomebodyElse = account !== undefined && account.uid !== userInfo().uid
  // The kernel of Linux ends it with this process, also when that is killed and gets to do nothing itself.
  const watched = hasProgram('setpriv') ? ['setpriv', '--pdeathsig', 'KILL', '--', program] : [program]
  const [first = program, ...before] = watched
  const child = spawn(first, [...before, ...args], {
    env: { PATH: `${process.env['PATH']}:/usr/sbin:/sbin`, LANG: 'C.UTF-8', ...env },
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
  child.on('error', error => {
    printed += String(error)
  })
  for (const end = Date.now() + START_MS; !(until?.test(printed) ?? (await isListening(port))); ) {
    const hasEnded = child.pid === undefined || child.exitCode !== null || child.signalCode !== null
    if (hasEnded || Date.now() > end) {
      await stop(child)
      const what = hasEnded ? `ended with status ${child.exitCode}` : `was not ready after ${START_MS} ms`
      throw new Error(`${program} ${what}: ${printed.slice(-1000)}`)
    }
    await sleep(20)
  }
  return {
    pid: child.pid ?? 0,
    output: () => printed,
    stop: () => stop(child, endsBy),
    killSessions: () => killAll(listDescendants(child.pid)),
  }
}

async function isListening(port = 0): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function stop(child: ChildProcess, endsBy?: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, 'exit')
  if (endsBy === undefined) killAll(listDescendants(child.pid))
  child.kill(endsBy ?? 'SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), endsBy === undefined ? STOP_MS : START_MS)
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
