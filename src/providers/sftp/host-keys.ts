import { createHash } from 'node:crypto'
import { UploadError } from '../../errors.ts'

/** Decides which host keys of one server are trusted. */
export interface HostKeys {
  /** Why a key is refused; undefined when it is trusted. Without pinned keys the first one is, for the life of the process. */
  check(key: Buffer): UploadError | undefined
}

/**
 * @param pinned fingerprints as `ssh-keygen -lf` prints them: `SHA256:` and base64 without padding
 * @param server words for the server, for messages
 */
export function createHostKeys(
  pinned: readonly string[],
  server: string,
  warn: (message: string) => void,
): HostKeys {
  const trusted = new Set(pinned)
  return {
    check(key) {
      const shown = fingerprintOf(key)
      if (trusted.has(shown)) return undefined
      const told = `${server} showed the host key ${kindOf(key)} ${shown}`
      if (trusted.size > 0) return refuse(told, pinned.length > 0)
      trusted.add(shown)
      warn(
        `${told}, which is trusted until this process ends. Compare it with what "ssh-keygen -lf" prints on that ` +
          'server, and set "hostFingerprint" to it.',
      )
      return undefined
    },
  }
}

function refuse(told: string, isPinned: boolean): UploadError {
  const other = isPinned ? 'which is none of "hostFingerprint"' : 'and another one before'
  return new UploadError(
    'delivery_failed',
    `${told}, ${other}. Somebody may be in between, or the server was set up anew: nothing was sent. ` +
      'Ask its operator, and set "hostFingerprint" to the right one.',
  )
}

function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256')
    .update(key)
    .digest('base64')
    .replace(/={1,2}$/, '')}`
}

/** Its kind is the first string of a public key (RFC 4253, section 6.6). */
function kindOf(key: Buffer): string {
  return key.toString('latin1', 4, 4 + key.readUInt32BE(0)).replace(/[^\w@.-]/g, '?')
}
