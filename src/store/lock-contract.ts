/** An object that somebody is at. */
export interface ObjectLock {
  /** See `ObjectId`. */
  readonly object: string
  /** What is stored there; of a removal its holder. Several may lock an object for the same content, and nobody else may then. */
  readonly content: string
  /** A job, whose delivery unlocks its objects, or what else stands for what is being done. */
  readonly holder: string
  /** The process. The locks of one that is gone are over. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** What several processes have locked against each other, by whatever destination. */
export interface LockStore {
  /**
   * Locks an object unless somebody has for another content.
   *
   * @returns who has; `shared`: it is locked now, as others have for the same content; undefined: it is locked now
   */
  lockObject(
    lock: ObjectLock,
  ): Promise<Pick<ObjectLock, 'content' | 'holder' | 'owner'> | 'shared' | undefined>
  /** Unlocks one object of a holder, or all. */
  unlockObjects(holder: string, object?: string): Promise<void>
}
