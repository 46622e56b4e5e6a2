/** An object at a destination. */
export interface ObjectName {
  /** `provider/configName`. */
  readonly destination: string
  readonly key: string
}

/** Where destinations have their objects, up to where a key begins, by `provider/configName`. */
export type Locations = ReadonlyMap<string, string>

/** An object by the place where it lies, which is one however many destinations reach it. */
export interface ObjectId {
  /** Place and key. */
  readonly object: string
  /** What it is called at each destination that reaches it: older programs wrote down no place. */
  readonly aliases: readonly ObjectName[]
}

export function identify({ destination, key }: ObjectName, locations: Locations): ObjectId {
  const object = (locations.get(destination) ?? `${destination}/`) + key
  const others = [...locations].filter(([id, location]) => id !== destination && object.startsWith(location))
  const aliases = others.map(([id, location]) => ({ destination: id, key: object.slice(location.length) }))
  return { object, aliases: [{ destination, key }, ...aliases.filter(one => one.key !== '')] }
}

/** How long something is promised, milliseconds since the epoch; `never`: it stays. */
export type End = number | 'never'

export function laterEnd(...ends: readonly (End | undefined)[]): End | undefined {
  if (ends.includes('never')) return 'never'
  return ends.reduce((last, end) => (last === undefined || (end ?? 0) > last ? end : last))
}

/** Keys that differ in case or Unicode form only are one file on some disks: these have one name. */
export const foldKey = (key: string): string => key.normalize('NFC').toLowerCase()

/** An object that goes again. */
export interface Expiry extends ObjectName {
  /** When its last promise ends, milliseconds since the epoch. */
  readonly dueAt: number
  /** Attempts to remove it that failed. */
  readonly attempts: number
  /** Why the last one did. */
  readonly problem: string | undefined
}

/** An object that is locked while it is removed. */
export interface LockedObject extends ObjectName, ObjectId {
  /** See `ObjectLock`. */
  readonly holder: string
}

export interface ExpiryStore {
  /**
   * Locks objects that are due, and gives them to be removed. One that is still promised is due when that ends.
   *
   * @param wanted `among`: the destinations, `provider/configName`; `locations`: of all destinations; `holder`: see `ObjectLock`;
   *   `longestPauseMs`: a next attempt that is further away was planned by a clock that has been set back since, and is due
   * @returns `isAll`: whether there were no more
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
  /** Writes that an object is gone, to all its entries, a bounded part at a time, and unlocks it. */
  noteRemoved(object: LockedObject, now: number): Promise<void>
  /** Writes that an object could not be removed, and when that is tried again, and unlocks it. */
  postponeRemoval(
    object: ObjectName & Pick<LockedObject, 'object' | 'holder'>,
    nextAttemptAt: number,
    problem: string,
  ): Promise<void>
  /** How many objects should be gone; beyond `most` they are not counted. */
  countDue(now: number, among: readonly string[], most: number): Promise<number>
  /** Objects that should be gone, the oldest first. @param among destinations; undefined: all */
  overdue(now: number, among: readonly string[] | undefined, limit: number): Promise<Expiry[]>
  /** Until when objects are promised, in order; undefined for those that the history does not hold. */
  promised(objects: readonly ObjectId[]): Promise<(End | undefined)[]>
  /** Of these destinations, `provider/configName`, those with objects that go again. */
  expiring(among: readonly string[]): Promise<string[]>
}
