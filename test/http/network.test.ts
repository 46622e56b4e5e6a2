import { expect, it } from 'vitest'
import { connectionProblem } from '../../src/http/network.ts'

const say = (code: string, advice = {}) => {
  const error = Object.assign(new Error('what the library said'), { code })
  const { message, retryable } = connectionProblem(error, 'it failed', advice)
  return [message, retryable]
}

it.each([
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])('%s is of a certificate', code => {
  expect(say(code)).toEqual([
    `it failed: its certificate is not trusted (${code}). Set "caFile" if it is issued by your own CA.`,
    false,
  ])
  expect(say(code, { certificate: 'Ask.' })).toEqual([
    `it failed: its certificate is not trusted (${code}). Ask.`,
    false,
  ])
})

it.each([
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another hostname', false],
  ['EPROTO', 'the TLS handshake failed (EPROTO). Use http instead of https', false],
  ['HPE_INVALID_CONSTANT', 'its response is not valid HTTP (HPE_INVALID_CONSTANT).', true],
  ['ENOTFOUND', 'its hostname does not exist.', false],
  ['ECONNRESET', 'it closed the connection.', true],
  // What basic-ftp meets on Node 24 and newer when the data connection is reset.
  ['ERR_STREAM_UNABLE_TO_PIPE', 'what the library said.', true],
  ['', 'what the library said.', true],
])('%s is none of a certificate: %s', (code, words, isTransient) => {
  expect(say(code)).toEqual([expect.stringContaining(words), isTransient])
})
