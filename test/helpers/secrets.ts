import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/** Names of settings, headers and variables whose values are secrets. */
const SECRET =
  /^(?:key|authorization|UPLOAD_SERVER_KEY|accountKey|.*(?:password|passphrase|secret|token)\w*)$/i
/** Shorter values are in other words, too. */
const SHORTEST = 8

/** The values of all secrets in a configuration or an environment, whatever the program takes for one. */
function secretsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') {
    // `{secret:name}` only names a secret.
    return SECRET.test(name) && value.length >= SHORTEST && !value.includes('{secret:') ? [value] : []
  }
  if (typeof value !== 'object' || value === null) return []
  // `secretHeader` has its value under `value`.
  return Object.entries(value).flatMap(([key, one]) => secretsIn(one, key === 'value' ? name : key))
}

/** The configuration in a folder. Undefined without one, or with one that a test has broken. */
export function configIn(directory: string): unknown {
  try {
    return JSON.parse(readFileSync(join(directory, 'upload-server.json'), 'utf8'))
  } catch {
    return undefined
  }
}

/** A secret in base64, alone or behind other bytes: the letters that only it decides. */
export const inBase64 = (secret: string): string[] =>
  [0, 1, 2].map(shift =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -4),
  )

/** What a secret may look like: encoded for a URL, a form or JSON, or in base64 alone or behind a user name. */
function spellingsOf(secret: string): string[] {
  return [
    ...[secret, encodeURIComponent(secret), new URLSearchParams([['', secret]]).toString().slice(1)],
    ...[JSON.stringify(secret).slice(1, -1), ...inBase64(secret).filter(text => text.length >= SHORTEST)],
  ]
}

/** That no secret is in the log of a server or in what a command prints. Each that a test starts ends with it. */
export function expectNoSecret(log: string, ...settings: unknown[]): void {
  for (const spelling of secretsIn(settings).flatMap(spellingsOf))
    expect(log, 'it has a secret').not.toContain(spelling)
}
