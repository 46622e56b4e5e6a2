import { describe, expect, it } from 'vitest'
import { isLoopbackAddress } from '../src/loopback-address.ts'

describe('a loopback address', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.53',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '0000:0000:0000:0000:0000:0000:0000:0001',
    '::ffff:127.0.0.1',
    '::FFFF:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:7f00:0001',
    '0:0:0:0:0:ffff:127.1.2.3',
  ])('is %s', address => {
    expect(isLoopbackAddress(address)).toBe(true)
  })

  it.each([
    undefined,
    '',
    '126.255.255.255',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '::2',
    '10.0.0.1',
    '192.168.1.5',
    '172.17.0.1',
    '169.254.1.1',
    'fe80::1',
    '::ffff:128.0.0.1',
    '::ffff:192.168.1.5',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '127.0.0.1, 203.0.113.9',
    'localhost',
  ])('is not %s', address => {
    expect(isLoopbackAddress(address)).toBe(false)
  })
})
