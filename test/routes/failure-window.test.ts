import { describe, expect, it } from 'vitest'
import { createFailureWindow, groupAddress } from '../../src/routes/failure-window.ts'

const MINUTE = 60_000

/** A window of one minute on a clock that the test moves. */
function startWindow(maxFailures: number) {
  const clock = { ms: 1_000_000 }
  const window = createFailureWindow(() => clock.ms)
  const fail = (address: string, times = 1) => {
    for (let i = 0; i < times; i++) window.count(address)
  }
  return { clock, waitS: (address: string) => window.waitS(address, maxFailures), fail }
}

describe('the failure window', () => {
  it('begins with the first failure and ends exactly when its time is over', () => {
    const { clock, waitS, fail } = startWindow(2)
    fail('203.0.113.9')
    clock.ms += 40_000
    fail('203.0.113.9')
    expect(waitS('203.0.113.9')).toBe(20)
    clock.ms += 19_999
    expect(waitS('203.0.113.9')).toBe(1)
    clock.ms += 1
    expect(waitS('203.0.113.9')).toBe(0)
  })

  it('does not add up failures of different windows', () => {
    const { clock, waitS, fail } = startWindow(3)
    fail('203.0.113.9', 2)
    clock.ms += MINUTE
    fail('203.0.113.9', 2)
    expect(waitS('203.0.113.9')).toBe(0)
    fail('203.0.113.9')
    expect(waitS('203.0.113.9')).toBe(60)
  })

  it('attack: one user walks through the addresses of an IPv6 network', () => {
    const { waitS, fail } = startWindow(10)
    for (let i = 1; i <= 10; i++) fail(`2001:db8:1:2::${i.toString(16)}`)
    expect(waitS('2001:db8:1:2:ffff::1')).toBe(60)
    expect(waitS('2001:db8:1:3::1')).toBe(0)
  })

  it('attack: an endless number of addresses fills the memory, so the oldest is forgotten and the newest kept', () => {
    const { waitS, fail } = startWindow(1)
    const address = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
    for (let i = 0; i < 10_000; i++) fail(address(i))
    expect(waitS(address(0))).toBe(60)
    fail(address(10_000))
    expect(waitS(address(0))).toBe(0)
    expect(waitS(address(1))).toBe(60)
    expect(waitS(address(10_000))).toBe(60)
  })

  it('forgets an address by the age of its latest window, not of its first', () => {
    const { clock, waitS, fail } = startWindow(1)
    fail('192.0.2.1')
    clock.ms += MINUTE
    for (let i = 0; i < 9_998; i++) fail(`10.0.${i >> 8}.${i & 255}`)
    fail('192.0.2.1')
    fail('192.0.2.2')
    fail('192.0.2.3')
    expect(waitS('192.0.2.1')).toBe(60)
    expect(waitS('10.0.0.0')).toBe(0)
  })
})

describe('one client', () => {
  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:cb00:7109', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['::1', '::/64'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('%j is %j', (address, group) => {
    expect(groupAddress(address)).toBe(group)
  })

  it('attack: a forwarded address of 16 KB is not remembered whole', () => {
    expect(groupAddress('a'.repeat(16_384))).toHaveLength(64)
  })
})
