import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { dropOwner, isGone, newOwner, parseOwner, SCOPE } from '../../src/flow/owner.ts'

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
