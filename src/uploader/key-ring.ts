import { splitExtension } from './file-name.ts'

/** The keys that uploads under way at one destination have taken, so that no two of them meet. */
export interface KeyRing {
  /** Takes the key, or the first of `-2`, `-3`… before the extension that is free and that `refuses` does not refuse. */
  take(key: string, refuses?: (key: string) => Promise<boolean>): Promise<string>
  release(key: string): void
}

/** Keys that differ in case or Unicode form only are one file on some disks. */
const identity = (key: string): string => key.normalize('NFC').toLowerCase()

export function createKeyRing(): KeyRing {
  const taken = new Set<string>()
  return {
    async take(key, refuses) {
      for (let count = 1; ; count++) {
        const candidate = count === 1 ? key : numbered(key, count)
        if (taken.has(identity(candidate))) continue
        taken.add(identity(candidate))
        try {
          if (!(await refuses?.(candidate))) return candidate
        } catch (error) {
          taken.delete(identity(candidate))
          throw error
        }
        taken.delete(identity(candidate))
      }
    },
    release: key => void taken.delete(identity(key)),
  }
}

function numbered(key: string, count: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${count}${extension}`
}
