import { describe, expect, it } from 'vitest'
import { allowAddresses } from '../../src/http/addresses.ts'

const NOBODY = { public: false, private: false, any: false }
const ANY = { public: false, private: false, any: true }
const LOCAL = { public: false, private: true, any: true }
const PUBLIC = { public: true, private: true, any: true }

const TABLE: [kind: string, expected: typeof PUBLIC, addresses: string[]][] = [
  ['public', PUBLIC, ['1.1.1.1', '8.8.8.8', '172.15.255.255', '172.32.0.1', '2606:4700::1111', '2a00::1']],
  ['mapped public', PUBLIC, ['::ffff:8.8.8.8', '::ffff:808:808', '::ffff:0:808:808']],
  ['NAT64 of public', PUBLIC, ['64:ff9b::808:808', '64:ff9b::8.8.8.8']],
  ['6to4 of public', PUBLIC, ['2002:808:808::1']],
  ['loopback', LOCAL, ['127.0.0.1', '127.255.255.254', '::1']],
  ['private', LOCAL, ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1']],
  ['unique local', LOCAL, ['fc00::1', 'fd12:3456::1']],
  ['mapped loopback', LOCAL, ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:0:7f00:1', '::ffff:10.0.0.1']],
  ['NAT64 and 6to4 of loopback', LOCAL, ['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '2002:7f00:1::']],
  ['link-local', ANY, ['169.254.169.254', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1']],
  ['link-local inside IPv6', ANY, ['::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1']],
  [
    'cloud metadata elsewhere',
    ANY,
    ['168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254', '::ffff:168.63.129.16'],
  ],
  ['metadata with a zone', ANY, ['fd00:ec2::254%eth0']],
  ['shared by carriers', ANY, ['100.64.0.1', '100.100.100.200', '100.127.255.255']],
  ['reserved', ANY, ['192.0.0.192', '240.0.0.1', '255.255.255.254', '192.88.99.1']],
  ['documentation', ANY, ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1']],
  ['benchmarking', ANY, ['198.18.0.1', '198.19.255.255', '2001:2::1']],
  ['IPv4-compatible', ANY, ['::7f00:1', '::808:808', '::a9fe:a9fe']],
  ['local NAT64', ANY, ['64:ff9b:1::7f00:1', '64:ff9b:1::808:808']],
  ['Teredo', ANY, ['2001:0:808:808::f7f7:f7f7', '2001::1']],
  ['site-local', ANY, ['fec0::1']],
  ['not given out', ANY, ['4000::1', '8000::1', '5f00::1', '100::1']],
  ['unspecified', NOBODY, ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0', '64:ff9b::']],
  ['multicast', NOBODY, ['224.0.0.1', '239.255.255.255', 'ff02::1', '::ffff:224.0.0.1']],
  ['broadcast', NOBODY, ['255.255.255.255', '::ffff:255.255.255.255']],
  [
    'another spelling',
    NOBODY,
    ['127.1', '2130706433', '0x7f.1', '017700000001', '0177.0.0.1', '[::1]', '8.8'],
  ],
  ['no address', NOBODY, ['', 'localhost', '8.8.8.8 ', '8.8.8.8/8', '1.1.1.1.1', ':::', '%eth0']],
]

describe('allowAddresses', () => {
  for (const [kind, expected, addresses] of TABLE) {
    it.each(addresses)(`judges %s as ${kind}`, address => {
      expect({
        public: allowAddresses('public')(address),
        private: allowAddresses('private')(address),
        any: allowAddresses('any')(address),
      }).toEqual(expected)
    })
  }
})
