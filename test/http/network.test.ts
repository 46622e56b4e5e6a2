import { expect, it } from 'vitest'
import { connectionProblem } from '../../src/http/network.ts'

const say = (code: string, advice = {}) => {
  const error = Object.assign(new Error('what the library said'), { code })
  const { message, retryable } = connectionProblem(error, 'it failed', advice)
  return [message, retryable]
}

const CERTIFICATE = 'Set "caFile" if it is issued by your own CA.'

it.each([
  ['CERT_HAS_EXPIRED', `its certificate is not trusted (CERT_HAS_EXPIRED). ${CERTIFICATE}`, false],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is not trusted', false],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'its certificate is not trusted', false],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its certificate is not trusted', false],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another hostname', false],
  ['EPROTO', 'the TLS handshake failed (EPROTO). Use http instead of https', false],
  ['HPE_INVALID_CONSTANT', 'its response is not valid HTTP (HPE_INVALID_CONSTANT).', true],
  ['ENOTFOUND', 'its hostname does not exist.', false],
  ['ECONNRESET', 'it closed the connection.', true],
  // What basic-ftp meets on Node 24 and newer when the data connection is reset.
  ['ERR_STREAM_UNABLE_TO_PIPE', 'what the library said.', true],
  ['', 'what the library said.', true],
])('%s is explained: %s', (code, words, isTransient) => {
  expect(say(code)).toEqual([expect.stringContaining(`it failed: ${words}`), isTransient])
})

it('the advice of the caller comes first', () => {
  expect(say('CERT_HAS_EXPIRED', { certificate: 'Ask.' })[0]).toMatch(/\(CERT_HAS_EXPIRED\)\. Ask\.$/)
})
