import { excerpt } from '../../http/client.ts'
import { isNoTls, isUntrusted, networkCodeOf } from '../../http/network.ts'
import type { S3Settings } from './settings.ts'

/** The end of a sentence about a service that gave no answer. */
export function explainNetwork(error: unknown, { bucketUrl, endpoint }: S3Settings): string {
  const name = new URL(bucketUrl).host
  const orPath = name !== new URL(endpoint).host ? ', or set "addressingStyle" to "path"' : ''
  const code = networkCodeOf(error)
  if (code === 'ENOTFOUND') return `the name ${name} is unknown. Check "endpoint" and "region"${orPath}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the certificate of ${name} is for another name. Check "endpoint"${orPath}`
  }
  if (isUntrusted(code)) {
    return `the certificate of ${name} is not trusted (${code}). Name its authority with "caFile"`
  }
  if (isNoTls(code)) {
    return `${name} does not speak TLS. Write http in front of "endpoint" if that is meant`
  }
  if (code === 'ERR_INVALID_CHAR') {
    return 'an option holds a character that no header may hold. Check the ends of "accessKeyId" and "sessionToken"'
  }
  if (code === 'ECONNREFUSED') return `nobody listens at ${name}`
  if (code === 'ETIMEDOUT') return `${name} did not answer in time`
  return `${name} broke off (${code || excerpt(error instanceof Error ? error.message : String(error))})`
}
