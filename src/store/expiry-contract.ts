/** An object at a destination. */
export interface ObjectName {
  /** `provider/configName`. */
  readonly destination: string
  readonly key: string
}

/** Locations of destinations, up to where the object key begins, by `provider/configName`. */
export type Locations = ReadonlyMap<string, string>

/** An object by its location, which is the same for all destinations that reach it. */
export interface ObjectId {
  /** Location and object key. */
  readonly object: string
  /** Its name at each destination that reaches it. Entries of earlier programs have no location. */
  readonly aliases: readonly ObjectName[]
}

export function identify({ destination, key }: ObjectName, locations: Locations): ObjectId {
  const object = (locations.get(destination) ?? `${destination}/`) + key
  const others = [...locations].filter(([id, location]) => id !== destination && object.startsWith(location))
  const aliases = others.map(([id, location]) => ({ destination: id, key: object.slice(location.length) }))
  return { object, aliases: [{ destination, key }, ...aliases.filter(one => one.key !== '')] }
}

/** When something expires, milliseconds since the epoch, or `never`. */
export type End = number | 'never'

export function laterEnd(...ends: readonly (End | undefined)[]): End | undefined {
  if (ends.includes('never')) return 'never'
  return ends.reduce((last, end) => (last === undefined || (end ?? 0) > last ? end : last))
}

/** The same name for object keys that differ only in case or Unicode form, because they are one file on some disks. */
export const foldKey = (key: string): string => key.normalize('NFC').toLowerCase()

/** An object that expires. */
export interface Expiry extends ObjectName {
  /** When it expires, milliseconds since the epoch. With several uploads, the latest time. */
  readonly dueAt: number
  /** Number of failed attempts to remove it. */
  readonly attempts: number
  /** Why the last attempt failed. */
  readonly problem: string | undefined
}

/** An object that is locked while it is removed. */
export interface LockedObject extends ObjectName, ObjectId {
  /** See `ObjectLock`. */
  readonly holder: string
}

export interface ExpiryStore {
  /**
   * Locks expired objects and returns them, to be removed. An object that a later upload has extended is due at its new time.
   *
   * @param wanted `among`: the destinations, `provider/configName`; `locations`: of all destinations; `holder`: see `ObjectLock`;
   *   `longestPauseMs`: a next attempt that is further away was planned by a clock that has been set back, and is due
   * @returns `isAll`: whether there are no more
   */
  takeDue(wanted: {
    readonly among: readonly string[]
    readonly locations: Locations
    readonly holder: string
    readonly owner: string
    readonly now: number
    readonly limit: number
    readonly longestPauseMs: number
  }): Promise<{ readonly objects: (Expiry & LockedObject)[]; readonly isAll: boolean }>
  /** Marks all entries of these objects as removed, a bounded part at a time, and unlocks the objects. */
  noteRemoved(objects: readonly LockedObject[], now: number): Promise<void>
  /** Saves that an object could not be removed, and the time of the next attempt, and unlocks it. */
  postponeRemoval(
    object: ObjectName & Pick<LockedObject, 'object' | 'holder'>,
    nextAttemptAt: number,
    problem: string,
  ): Promise<void>
  /** Number of expired objects that still exist, counted up to `most`. */
  countDue(now: number, among: readonly string[], most: number): Promise<number>
  /** Expired objects that still exist, oldest first. @param among destinations; undefined: all */
  overdue(now: number, among: readonly string[] | undefined, limit: number): Promise<Expiry[]>
  /** When objects expire, in order. Undefined for objects that are not in the history. */
  promised(objects: readonly ObjectId[]): Promise<(End | undefined)[]>
  /** Those of these destinations, `provider/configName`, that have objects that expire. */
  expiring(among: readonly string[]): Promise<string[]>
}
