/** Cached keys are used for that long before they are fetched again. */
const FRESH_MS = 10 * 60_000
/** Cached keys are used for that long while they can't be fetched. */
const STALE_MS = 24 * 60 * 60_000
/** Minimum time between two fetches, failed ones included. */
const PAUSE_MS = 30_000

/** No keys are known at present. `message` is the reason, for the log. */
export class KeysUnavailable extends Error {
  /** Seconds until they are fetched again. */
  readonly retryAfterS: number

  constructor(reason: string, retryAfterS: number) {
    super(reason)
    this.name = 'KeysUnavailable'
    this.retryAfterS = retryAfterS
  }
}

/** The signing keys of one issuer. A reload of the configuration keeps them. */
export interface KeyCache<Keys> {
  /**
   * The keys, fetched if they are older than 10 minutes.
   *
   * @param load fetches them; what it throws is the reason for the log
   * @throws KeysUnavailable
   */
  current(load: () => Promise<Keys>): Promise<Keys>
  /** Newer keys than those, for a token that was signed with another key. Undefined if they were fetched less than 30 s ago. */
  newerThan(known: Keys, load: () => Promise<Keys>): Promise<Keys | undefined>
}

/**
 * @param warn gets the reason each time the keys can't be fetched, at most every 30 s
 * @param now a monotonic clock, milliseconds
 */
export function createKeyCache<Keys>(
  warn: (reason: string) => void,
  now: () => number = () => performance.now(),
): KeyCache<Keys> {
  let cached: { readonly keys: Keys; readonly at: number } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  let failure = ''

  /** Fetches the keys, unless that was done a moment ago. Several requests share one fetch. */
  async function ask(load: () => Promise<Keys>): Promise<void> {
    if (asking) return asking
    if (now() - askedAt < PAUSE_MS) return
    askedAt = now()
    asking = load()
      .then(
        keys => {
          cached = { keys, at: now() }
        },
        (error: unknown) => {
          failure = error instanceof Error ? error.message : String(error)
          warn(failure)
        },
      )
      .finally(() => {
        asking = undefined
      })
    await asking
  }

  const ageMs = () => (cached ? now() - cached.at : Number.POSITIVE_INFINITY)

  return {
    async current(load) {
      if (ageMs() >= FRESH_MS) await ask(load)
      if (cached && ageMs() < STALE_MS) return cached.keys
      throw new KeysUnavailable(failure, Math.max(1, Math.ceil((askedAt + PAUSE_MS - now()) / 1000)))
    },
    async newerThan(known, load) {
      await ask(load)
      return cached?.keys === known ? undefined : cached?.keys
    },
  }
}
