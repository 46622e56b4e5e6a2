import { splitExtension } from './file-name.ts'
import { createShared, type Shared } from './shared.ts'

/** The keys that uploads under way at one destination have taken, so that no two of them meet. */
export interface KeyRing {
  /** Takes the key, or the first of `-2`, `-3`… before the extension that is free and that `refuses` does not refuse. */
  take(key: string, refuses?: (key: string) => Promise<boolean>): Promise<string>
  release(key: string): void
}

/** Keys that differ in case or Unicode form only are one file on some disks. */
const identity = (key: string): string => key.normalize('NFC').toLowerCase()

/** @param scope what the keys are told apart by from those of other destinations */
export function createKeyRing(shared: Shared = createShared(), scope = ''): KeyRing {
  const nameOf = (key: string) => `${scope}/${identity(key)}`
  return {
    async take(key, refuses) {
      for (let count = 1; ; count++) {
        const candidate = count === 1 ? key : numbered(key, count)
        if (!(await shared.take(nameOf(candidate)))) continue
        if (!refuses) return candidate
        try {
          if (!(await refuses(candidate))) return candidate
        } catch (error) {
          shared.release(nameOf(candidate))
          throw error
        }
        shared.release(nameOf(candidate))
      }
    },
    release: key => shared.release(nameOf(key)),
  }
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
