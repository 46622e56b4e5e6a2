import { createHmac } from 'node:crypto'
import { appendFile, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makePath } from '../../files/make-path.ts'
import type { KnownHosts } from '../contract.ts'

/** A host key of a server from a file in OpenSSH's format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". */
export interface KnownKey {
  /** Type of the host key, such as `ssh-ed25519`. */
  readonly kind: string
  /** Public key in Base64. */
  readonly key: string
  readonly isRevoked: boolean
  /** File and line, for messages. */
  readonly where: string
}

/** Returns the name of a server in the files. */
export function knownName(host: string, port: number): string {
  const name = host.toLowerCase()
  return port === 22 ? name : `[${name}]:${port}`
}

/** Reads the host keys of a server from the files. Files that don't exist or can't be read are skipped. */
export async function readKnownKeys({ kept, others }: KnownHosts, name: string): Promise<KnownKey[]> {
  const files = [{ path: kept, words: '"known_hosts" in the data folder' }, ...others]
  const found = await Promise.all(
    files.map(async ({ path, words }) => {
      const text = await readFile(path, 'utf8').catch(() => '')
      return text.split('\n').flatMap((line, index) => readLine(line, name, `line ${index + 1} of ${words}`))
    }),
  )
  return found.flat()
}

function readLine(line: string, name: string, where: string): KnownKey[] {
  const fields = line.trim().split(/\s+/)
  const marker = fields[0]?.startsWith('@') ? fields.shift() : undefined
  const [names = '', kind, key] = fields
  // Certificates are not supported, and the key of a certificate authority is not a host key.
  if (names.startsWith('#') || !kind || !key || marker === '@cert-authority' || !isNamed(names, name))
    return []
  return [{ kind, key, isRevoked: marker === '@revoked', where }]
}

function isNamed(names: string, name: string): boolean {
  if (names.startsWith('|1|')) {
    const [salt = '', hash] = names.slice(3).split('|')
    return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === hash
  }
  const patterns = names.toLowerCase().split(',')
  const isIn = (list: readonly string[]) => list.some(pattern => isLike(name, pattern))
  const excluded = patterns.filter(one => one.startsWith('!')).map(one => one.slice(1))
  return isIn(patterns) && !isIn(excluded)
}

/** Matches a pattern: `*` is any text, `?` any character. */
function isLike(text: string, pattern: string): boolean {
  let [at, p, star, retry] = [0, 0, -1, 0]
  while (at < text.length) {
    if (pattern[p] === '*') [star, retry] = [p++, at]
    else if (pattern[p] === '?' || pattern[p] === text[at]) [p, at] = [p + 1, at + 1]
    else if (star >= 0) [p, at] = [star + 1, ++retry]
    else return false
  }
  return /^\**$/.test(pattern.slice(p))
}

/** Appends a line to the server's own file, which is created if it does not exist. @throws an error of the file system */
export async function keepKey(file: string, name: string, kind: string, key: Buffer): Promise<void> {
  await makePath(dirname(file), 0o700)
  const before = await readFile(file, 'utf8').catch(() => '')
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  await appendFile(file, `${gap}${name} ${kind} ${key.toString('base64')}\n`, { mode: 0o600 })
}
