import { splitExtension } from '../../payload/file-name.ts'
import type { Stored } from '../../providers/contract.ts'
import { createTurns, type Turns } from './turns.ts'

/** The keys that uploads at one destination have taken, so that no two of them meet with different bytes. */
export interface KeyRing {
  /**
   * Takes the key, or the first of `-2`, `-3`… before the extension that nobody has for other bytes and that `refuses`
   * does not refuse. Whoever has it releases it.
   *
   * @returns `stored` when somebody has stored the same bytes under it: then they need not go out again
   */
  take(key: string, sha256: string, signal: AbortSignal, refuses?: Refuses): Promise<TakenKey>
  /** Says that the bytes are stored under a key that was taken. */
  settle(key: string, stored: Stored): void
  release(key: string): void
}

export interface TakenKey {
  readonly key: string
  readonly stored: Stored | undefined
}

type Refuses = (key: string) => Promise<boolean>

/** Keys that differ in case or Unicode form only are one file on some disks. */
const identity = (key: string): string => key.normalize('NFC').toLowerCase()

/** @param scope what the keys are told apart by from those of other destinations */
export function createKeyRing(turns: Turns = createTurns(), scope = ''): KeyRing {
  const nameOf = (key: string) => `${scope}/${identity(key)}`
  return {
    async take(key, sha256, signal, refuses) {
      for (let count = 1; ; count++) {
        const candidate = count === 1 ? key : numbered(key, count)
        const taken = await turns.take(nameOf(candidate), `${sha256} ${candidate}`, signal)
        if (taken === 'taken') continue
        if (taken !== 'free') return { key: candidate, stored: taken }
        try {
          if (!(await refuses?.(candidate))) return { key: candidate, stored: undefined }
        } catch (error) {
          turns.release(nameOf(candidate))
          throw error
        }
        turns.release(nameOf(candidate))
      }
    },
    settle: (key, stored) => turns.settle(nameOf(key), stored),
    release: key => turns.release(nameOf(key)),
  }
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
