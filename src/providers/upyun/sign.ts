import { createHash, createHmac } from 'node:crypto'
import { unescape as decode } from 'node:querystring'

export interface Operator {
  readonly operator: string
  readonly password: string
}

/**
 * Creates the value of `Authorization`, as in Upyun's documentation of REST API authentication.
 *
 * @param path path of the request, encoded as it is sent
 * @param date value of the header `Date`
 * @param bodyMd5 value of the header `Content-MD5`, hex
 */
export function signRequest(
  { operator, password }: Operator,
  {
    method,
    path,
    date,
    bodyMd5,
  }: { method: string; path: string; date: string; bodyMd5?: string | undefined },
): string {
  const text = [method, path, date, ...(bodyMd5 === undefined ? [] : [bodyMd5])].join('&')
  return `UPYUN ${operator}:${createHmac('sha1', md5(password)).update(text).digest('base64')}`
}

/**
 * Appends the parameter that domains with token protection ("Token 防盗链") require.
 *
 * @param url complete URL; the name of an image style in it is also signed
 * @param expiresS time at which the URL expires, in seconds since 1970
 */
export function addToken(url: string, token: string, expiresS: number): string {
  const hash = md5(`${token}&${expiresS}&${decode(new URL(url).pathname)}`)
  return `${url}${url.includes('?') ? '&' : '?'}_upt=${hash.slice(12, 20)}${expiresS}`
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}
