import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'

/** Notices when something else comes to lie in the place of an SQLite file that is open. */
export interface SqliteFiles {
  /**
   * Whether the file or its log is another one than at the first call, or gone. What was written may be gone with it.
   *
   * @param maxAgeMs how old an answer may be that says no; default: it is looked at now
   */
  isLost(maxAgeMs?: number): boolean
  /** Removes what belongs to a file that is closed and has been replaced: SQLite would take it for the new one's. */
  removeRest(): Promise<void>
}

export function watchSqliteFiles(path: string): SqliteFiles {
  const [log, index] = [`${path}-wal`, `${path}-shm`]
  let first: { file: number | undefined; log: number | undefined; index: number | undefined } | undefined
  let lastLook = Number.NEGATIVE_INFINITY
  return {
    isLost(maxAgeMs = 0) {
      const now = performance.now()
      if (now - lastLook < maxAgeMs) return false
      const [file, itsLog] = [numberOf(path), numberOf(log)]
      first ??= { file, log: itsLog, index: numberOf(index) }
      const isLost = file !== first.file || itsLog !== first.log
      if (!isLost) lastLook = now
      return isLost
    },
    async removeRest() {
      if (!first || numberOf(path) === first.file) return
      if (numberOf(log) === first.log) await rm(log, { force: true })
      if (numberOf(index) === first.index) await rm(index, { force: true })
    },
  }
}

/** As long as a file is open no other one gets its number. */
function numberOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino
}
