import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { dropOwner, isGone, newOwner, parseOwner, SCOPE } from '../../src/flow/owner.ts'
import { eventually } from '../helpers/eventually.ts'
import { needsLinux } from '../helpers/needs.ts'

const RANDOM = '0123456789ab'
const HOUR_MS = 3_600_000

/** A process of this machine that has ended. */
async function endedPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  return child.pid ?? 0
}

describe('the name of an owner', () => {
  it('tells machine and process, and is never given twice', () => {
    const names = Array.from({ length: 100 }, () => newOwner(SCOPE))
    expect(new Set(names).size).toBe(100)
    expect(parseOwner(names[0]!)).toMatchObject({ host: SCOPE, pid: process.pid })
    expect(SCOPE).toMatch(/^[A-Za-z0-9_-]+-[0-9a-f]{8}$/)
  })

  it.each([
    '',
    'me',
    'host.1',
    `host.x.${RANDOM}`,
    `host.1.${RANDOM}0`,
    `a.b.1.${RANDOM}`,
    `host.1.${RANDOM}\n`,
  ])('can not be "%s", and then nobody takes it for gone', name => {
    expect(parseOwner(name)).toBeUndefined()
    expect(isGone(name, HOUR_MS, 1)).toBe(false)
  })
})

describe('a process is gone', () => {
  it('of this machine: when it has ended, however recent its last sign is', async () => {
    expect(isGone(`${SCOPE}.${await endedPid()}.${RANDOM}`, 0, HOUR_MS)).toBe(true)
    expect(isGone(`${SCOPE}.${process.ppid}.${RANDOM}`, HOUR_MS, 1)).toBe(false)
  })

  it('of this machine: when another one has its number by now', async context => {
    needsLinux(context, '/proc tells when a process was started')
    const stat = await readFile(`/proc/${process.ppid}/stat`, 'latin1')
    const started = stat.slice(stat.lastIndexOf(')')).split(' ')[20]
    expect(isGone(`${SCOPE}.${process.ppid}-${started}.${RANDOM}`, HOUR_MS, 1)).toBe(false)
    expect(isGone(`${SCOPE}.${process.ppid}-1${started}.${RANDOM}`, 0, HOUR_MS)).toBe(true)
  })

  it('of this machine: when it has ended, though its parent took no notice', async context => {
    needsLinux(context, '/proc tells the state of a process')
    const script = 'sleep 60 & echo $!; exec sleep 60'
    const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [pid] = await once(parent.stdout, 'data')
    // A shell would take notice; the program it becomes does not.
    const nameOf = () => readFile(`/proc/${parent.pid}/comm`, 'utf8')
    await eventually(async () => expect(await nameOf()).toBe('sleep\n'))
    process.kill(Number(pid), 'SIGKILL')
    await eventually(() => expect(isGone(`${SCOPE}.${Number(pid)}.${RANDOM}`, 0, HOUR_MS)).toBe(true))
    expect(() => process.kill(Number(pid), 0)).not.toThrow()
  })

  it('of this machine: when it had the number of this one', () => {
    expect(isGone(`${SCOPE}.${process.pid}.${RANDOM}`, 0, HOUR_MS)).toBe(true)
  })

  it('of this very process: never, until it is dropped', () => {
    const owner = newOwner(SCOPE)
    expect(isGone(owner, HOUR_MS, 1)).toBe(false)
    dropOwner(owner)
    expect(isGone(owner, 0, HOUR_MS)).toBe(true)
  })

  it.each([
    ['another machine', 'elsewhere-01234567'],
    ['a container of the same host name', SCOPE.replace(/[0-9a-f]{8}$/, '01234567')],
  ])('of %s: after its silence, whatever runs here under its number', async (_what, host) => {
    for (const pid of [process.pid, 1, await endedPid()]) {
      expect(isGone(`${host}.${pid}.${RANDOM}`, 999, 1000)).toBe(false)
      expect(isGone(`${host}.${pid}.${RANDOM}`, 1001, 1000)).toBe(true)
    }
  })
})
