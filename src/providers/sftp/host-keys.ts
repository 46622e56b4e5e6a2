import { createHash, createHmac } from 'node:crypto'
import { appendFile, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemCode } from '../../errors.ts'
import { makePath } from '../../files/make-path.ts'
import { Problem } from '../../problem.ts'
import type { KnownHosts } from '../contract.ts'

export type HostKeys = ReturnType<typeof createHostKeys>

export interface HostKeyOptions {
  readonly host: string
  readonly port: number
  /** Fingerprints as `ssh-keygen -lf` prints them: `SHA256:` and base64 without padding. */
  readonly pinned: readonly string[]
  /** Undefined: trusted host keys are kept only until the process ends. */
  readonly files: KnownHosts | undefined
  /** Name of the server in messages. */
  readonly server: string
  warn(message: string): void
}

/** Decides which host keys of a server are trusted: pinned ones, otherwise known ones, otherwise the first one (trust on first use). */
export function createHostKeys({ host, port, pinned, files, server, warn }: HostKeyOptions) {
  /** Name of the server in the files. */
  const name = port === 22 ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`
  /** Host keys that this process trusts, in case they can't be written to the file. */
  const trusted = new Set<string>()
  const describe = (key: Buffer) => `${server} presented the host key ${kindOf(key)} ${fingerprintOf(key)}`
  const known = async () => (files === undefined || pinned.length > 0 ? [] : await readKnownKeys(files, name))
  const refuse = (key: Buffer, why: string) =>
    new Problem(
      `${describe(key)}, ${why}. This may be a man-in-the-middle attack, or the server was reinstalled. Nothing was sent`,
      { advice: 'Ask its operator.' },
    )

  return {
    /** Describes a host key: its server, its type and its fingerprint. */
    describe,
    /** Returns the types of known host keys. A server with several types should use one of them. */
    kinds: async () => (await known()).filter(one => !one.isRevoked).map(one => one.kind),
    /** Returns whether a host key is trusted. @throws Problem if it must be rejected */
    async judge(key: Buffer): Promise<'trusted' | 'unknown'> {
      const shown = fingerprintOf(key)
      if (pinned.includes(shown)) return 'trusted'
      if (pinned.length > 0) throw refuse(key, 'which is not in "hostFingerprint"')
      const keys = await known()
      const same = keys.filter(one => one.key === key.toString('base64'))
      const revoked = same.find(one => one.isRevoked)
      if (revoked) throw refuse(key, `which is revoked by ${revoked.where}`)
      if (same.length > 0 || trusted.has(shown)) return 'trusted'
      const other = keys.find(one => !one.isRevoked)
      if (other) throw refuse(key, describeOther(other))
      if (trusted.size > 0) throw refuse(key, 'but presented a different one before')
      return 'unknown'
    },
    /** Trusts a host key from now on, and writes it to the file if possible. */
    async trust(key: Buffer): Promise<void> {
      trusted.add(fingerprintOf(key))
      let until = 'until this process ends'
      try {
        if (files) {
          await keepKey(files.kept, `${name} ${kindOf(key)} ${key.toString('base64')}`)
          until = 'from now on'
        }
      } catch (error) {
        warn(`${server}: its host key can't be saved in the data folder (${systemCode(error)}).`)
      }
      warn(
        `${describe(key)}, which was unknown. It is trusted ${until}: ` +
          'compare it with what "ssh-keygen -lf" prints on that server. Set "hostFingerprint" to pin it.',
      )
    },
  }
}

/** A host key of a server from a file in OpenSSH's format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". */
interface KnownKey {
  /** Type of the host key, such as `ssh-ed25519`. */
  readonly kind: string
  /** Public key in Base64. */
  readonly key: string
  readonly isRevoked: boolean
  /** File and line, for messages. */
  readonly where: string
}

function describeOther({ kind, key, where }: KnownKey): string {
  return `but ${where} has a different one, ${kind} ${fingerprintOf(Buffer.from(key, 'base64'))}. If the new one is correct, remove that line`
}

function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace('=', '')}`
}

/** Returns the type of a public key, which is its first string (RFC 4253, section 6.6). */
function kindOf(key: Buffer): string {
  return key.toString('latin1', 4, 4 + key.readUInt32BE(0)).replace(/[^\w@.-]/g, '?')
}

/** Reads the host keys of a server from the files. Files that don't exist or can't be read are skipped. */
async function readKnownKeys({ kept, others }: KnownHosts, name: string): Promise<KnownKey[]> {
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
  const isExcluded = patterns.some(one => one.startsWith('!') && isLike(name, one.slice(1)))
  return !isExcluded && patterns.some(one => isLike(name, one))
}

/** Matches a pattern: `*` is any text, `?` any character. */
function isLike(text: string, pattern: string): boolean {
  const source = pattern
    .replace(/[\\^$.+()[\]{}|]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${source}$`).test(text)
}

/** Appends a line to the server's own file, which is created if it does not exist. @throws an error of the file system */
async function keepKey(file: string, line: string): Promise<void> {
  await makePath(dirname(file), 0o700)
  const before = await readFile(file, 'utf8').catch(() => '')
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  await appendFile(file, `${gap}${line}\n`, { mode: 0o600 })
}
