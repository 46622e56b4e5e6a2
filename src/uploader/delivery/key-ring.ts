import { splitExtension } from '../../payload/file-name.ts'
import type { Stored } from '../../providers/contract.ts'
import { nameOf } from '../../store/expiry-contract.ts'
import { createSharedTurns, type SharedTurns } from './shared-turns.ts'

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

/** @param scope what the keys are told apart by from those of other destinations */
export function createKeyRing(turns: SharedTurns = createSharedTurns(), scope = ''): KeyRing {
  const idOf = (key: string) => `${scope}/${nameOf(key)}`
  return {
    async take(key, sha256, signal, refuses) {
      for (let count = 1; ; count++) {
        const candidate = count === 1 ? key : numbered(key, count)
        const taken = await turns.take(idOf(candidate), `${sha256} ${candidate}`, signal)
        if (taken === 'taken') continue
        if (taken !== 'free') return { key: candidate, stored: taken }
        try {
          if (!(await refuses?.(candidate))) return { key: candidate, stored: undefined }
        } catch (error) {
          turns.release(idOf(candidate))
          throw error
        }
        turns.release(idOf(candidate))
      }
    },
    settle: (key, stored) => turns.settle(idOf(key), stored),
    release: key => turns.release(idOf(key)),
  }
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
