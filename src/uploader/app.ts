import type { NamedSlots } from '../flow/slots.ts'
import type { Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { Database } from '../store/database.ts'
import type { Owner } from '../store/owners.ts'
import type { Destination, LeftOut } from './destinations.ts'
import type { Finalizer } from './finalize.ts'
import type { Hook } from './hooks.ts'
import type { SourceSettings } from './sources/index.ts'

/** Objects that exist once per process. A reload changes their limits and hooks, nothing else. */
export interface Runtime {
  readonly database: Database
  /** This process in the database. */
  readonly owner: Owner
  readonly payloads: Payloads
  /** For destinations that have no spool. */
  readonly spool: Spool
  /** Upload slots, by destination. */
  readonly slots: NamedSlots
  /** Slots for requests whose inputs are fetched from a URL or the clipboard. */
  readonly fetches: NamedSlots
  readonly finalizer: Finalizer
  readonly background: Background
  /** Aborted when the process ends: what runs then is cut short. */
  readonly ending: AbortSignal
  /** Hides secrets. */
  mask(text: string): string
  /** Writes a line of the log. */
  warn(message: string, details?: object): void
}

/** Objects that uploads by one configuration need. It does not depend on HTTP. */
export interface Uploader extends Runtime {
  readonly destinations: readonly Destination[]
  /** The setting `default`. */
  readonly defaultId: string | undefined
  /** Destinations that can't be used. A request for one of them gets the reason. */
  readonly leftOut: readonly LeftOut[]
  readonly sources: SourceSettings
  readonly limits: DeliveryLimits
  /** Hooks of uploads that begin with this configuration. */
  readonly hooks: readonly Hook[]
}

export interface DeliveryLimits {
  /** For one file at one destination: the queue, all attempts, and the pauses between them. */
  readonly timeoutMs: number
  /** Number of retries after a transient failure. */
  readonly retries: number
}

/** Work that goes on after its request has got a response. */
export interface Background {
  /** @returns the same work. Its failure only reaches code that awaits it */
  run<T>(work: Promise<T>): Promise<T>
  /** Settles when nothing runs. */
  idle(): Promise<void>
}

export function createBackground(): Background {
  const running = new Set<Promise<unknown>>()
  return {
    run(work) {
      const end = () => void running.delete(settled)
      const settled: Promise<void> = work.then(end, end)
      running.add(settled)
      return work
    },
    async idle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
