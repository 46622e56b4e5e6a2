import { createHmac } from 'node:crypto'
import { appendFile, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makePath } from '../../files/make-path.ts'
import type { KnownHosts } from '../contract.ts'

/** A host key that a file names for a server. The format is that of OpenSSH: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". */
export interface KnownKey {
  /** As `ssh-ed25519`. */
  readonly kind: string
  /** Base64. */
  readonly key: string
  readonly isRevoked: boolean
  /** Words for the file and the line. */
  readonly where: string
}

/** How the files name a server. */
export function knownName(host: string, port: number): string {
  const name = host.toLowerCase()
  return port === 22 ? name : `[${name}]:${port}`
}

/** What the files say of a server. One that is missing or can't be read says nothing. */
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
  // Certificates are not understood here, and what signs them is no host key.
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

/** `*` stands for any text, `?` for a character. */
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

/** Adds a line to the program's own file, which is made when it is missing. @throws an error of the system */
export async function keepKey(file: string, name: string, kind: string, key: Buffer): Promise<void> {
  await makePath(dirname(file), 0o700)
  const before = await readFile(file, 'utf8').catch(() => '')
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  await appendFile(file, `${gap}${name} ${kind} ${key.toString('base64')}\n`, { mode: 0o600 })
}
