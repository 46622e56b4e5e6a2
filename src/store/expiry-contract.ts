/** An object at a destination. */
export interface ObjectName {
  /** `provider/configName`. */
  readonly destination: string
  readonly key: string
}

/** Keys that differ in case or Unicode form only are one file on some disks: these have one name. */
export const nameOf = (key: string): string => key.normalize('NFC').toLowerCase()

/** An object that goes again. */
export interface Expiry extends ObjectName {
  /** When its last promise ends, milliseconds since the epoch. */
  readonly dueAt: number
  /** Attempts to remove it that failed. */
  readonly attempts: number
  /** Why the last one did. */
  readonly problem: string | undefined
}

/** An object whose key is held while it is removed. */
export interface HeldObject extends ObjectName {
  /** See `KeyHold`. */
  readonly holder: string
}

/** A key that is held while something is done at it. */
interface KeyHold extends ObjectName {
  /** What is stored there; of a removal its holder. Several may hold a key for the same content, and nobody else may then. */
  readonly content: string
  /** A job, whose delivery gives back what it holds, or what else stands for what is being done. */
  readonly holder: string
  /** The process. What one that is gone has held is free again. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

export interface ExpiryStore {
  /**
   * Holds a key unless somebody does for another content, whichever process that is in.
   *
   * @returns who does; undefined: it is held now
   */
  holdKey(hold: KeyHold): Promise<Pick<KeyHold, 'content' | 'holder' | 'owner'> | undefined>
  /** Gives back all that a holder holds. */
  releaseKeys(holder: string): Promise<void>
  /**
   * Holds objects that are due, and gives them to be removed. One that is still promised is due when that ends.
   *
   * @param wanted `among`: the destinations, `provider/configName`; `longestPauseMs`: a next attempt that is further away
   *   was planned by a clock that has been set back since, and is due
   * @returns `isAll`: whether there were no more
   */
  takeDue(wanted: {
    readonly among: readonly string[]
    readonly owner: string
    readonly now: number
    readonly limit: number
    readonly longestPauseMs: number
  }): Promise<{ readonly objects: (Expiry & HeldObject)[]; readonly isAll: boolean }>
  /** Writes that an object is gone, to all its entries, a bounded part at a time. Its key is free then. */
  noteRemoved(object: HeldObject, now: number): Promise<void>
  /** Writes that an object could not be removed, and when that is tried again. Its key is free then. */
  postponeRemoval(object: HeldObject, nextAttemptAt: number, problem: string): Promise<void>
  /** How many objects should be gone; beyond `most` they are not counted. */
  countDue(now: number, among: readonly string[], most: number): Promise<number>
  /** Objects that should be gone, the oldest first. @param among destinations; undefined: all */
  overdue(now: number, among: readonly string[] | undefined, limit: number): Promise<Expiry[]>
  /** Of these destinations, `provider/configName`, those with objects that go again. */
  expiring(among: readonly string[]): Promise<string[]>
}
