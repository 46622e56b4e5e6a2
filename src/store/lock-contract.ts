/** A lock of an object. */
export interface ObjectLock {
  /** See `ObjectId`. */
  readonly object: string
  /** What is being stored, or the holder if it is a removal. Several locks of one object need the same content. */
  readonly content: string
  /** A job, whose delivery releases its locks, or the ID of a removal. */
  readonly holder: string
  /** The process. When it has ended, its locks are released. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Locks of objects between processes. They apply to all destinations that reach an object. */
export interface LockStore {
  /**
   * Locks an object unless it is locked for other content.
   *
   * @returns undefined if it is locked now; `shared` if it is locked now and others have locked it for the same content;
   *   otherwise the existing lock
   */
  lockObject(
    lock: ObjectLock,
  ): Promise<Pick<ObjectLock, 'content' | 'holder' | 'owner'> | 'shared' | undefined>
  /** Releases the lock of one object of a holder, or all its locks. */
  unlockObjects(holder: string, object?: string): Promise<void>
}
