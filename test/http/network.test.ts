import { expect, it } from 'vitest'
import { isUntrusted } from '../../src/http/network.ts'

it.each([
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])('%s is of a certificate', code => {
  expect(isUntrusted(code)).toBe(true)
})

// What basic-ftp meets on Node 24 and newer when the data connection is reset.
it.each(['ERR_STREAM_UNABLE_TO_PIPE', 'ECONNRESET', ''])('%s is not', code => {
  expect(isUntrusted(code)).toBe(false)
})
