import { createHash } from 'node:crypto'
import { systemCode } from '../../errors.ts'
import { Problem } from '../../problem.ts'
import type { KnownHosts } from '../contract.ts'
import { type KnownKey, keepKey, knownName, readKnownKeys } from './known-hosts.ts'

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
  const name = knownName(host, port)
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
    /** Returns whether a host key is trusted, or an error if it must be rejected. */
    async judge(key: Buffer): Promise<'trusted' | 'unknown' | Problem> {
      const shown = fingerprintOf(key)
      if (pinned.length > 0) {
        if (pinned.includes(shown)) return 'trusted'
        return refuse(key, 'which is not in "hostFingerprint"')
      }
      const keys = await known()
      const same = keys.filter(one => one.key === key.toString('base64'))
      const revoked = same.find(one => one.isRevoked)
      if (revoked) return refuse(key, `which is revoked by ${revoked.where}`)
      if (same.length > 0 || trusted.has(shown)) return 'trusted'
      const other = keys.find(one => !one.isRevoked)
      if (other) return refuse(key, describeOther(other))
      return trusted.size > 0 ? refuse(key, 'but presented a different one before') : 'unknown'
    },
    /** Trusts a host key from now on, and writes it to the file if possible. */
    async trust(key: Buffer): Promise<void> {
      trusted.add(fingerprintOf(key))
      const isKept =
        files !== undefined &&
        (await keepKey(files.kept, name, kindOf(key), key).then(
          () => true,
          error => {
            warn(`${server}: its host key can't be saved in the data folder (${systemCode(error)}).`)
            return false
          },
        ))
      warn(
        `${describe(key)}, which was unknown. It is trusted ${isKept ? 'from now on' : 'until this process ends'}: ` +
          'compare it with what "ssh-keygen -lf" prints on that server. Set "hostFingerprint" to pin it.',
      )
    },
  }
}

function describeOther({ kind, key, where }: KnownKey): string {
  return `but ${where} has a different one, ${kind} ${fingerprintOf(Buffer.from(key, 'base64'))}. If the new one is correct, remove that line`
}

function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256')
    .update(key)
    .digest('base64')
    .replace(/={1,2}$/, '')}`
}

/** Returns the type of a public key, which is its first string (RFC 4253, section 6.6). */
function kindOf(key: Buffer): string {
  return key.toString('latin1', 4, 4 + key.readUInt32BE(0)).replace(/[^\w@.-]/g, '?')
}
