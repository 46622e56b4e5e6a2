import { messageOf } from '../../errors.ts'
import type { Delivery, HistoryEntry, Job, Progress, Store, StoredFile } from '../../store/contract.ts'
import type { QuotaUse } from '../../store/quota-contract.ts'
import { FinalizationPending } from './finalization-pending.ts'

const HISTORY_STEP = 'history'

export interface JournalDeps {
  readonly store: Store
  /** Name of this process. */
  readonly owner: string
  now(): Date
  warn(message: string, details?: object): void
}

type Change = Pick<Progress, 'state' | 'steps'> & Partial<Progress>

/** Saves the progress of jobs. What the database does not accept is kept in memory and written later. */
export interface Journal {
  /**
   * Saves what was delivered, with its history. @returns the changed job
   * @param quota what it has taken of quotas
   * @throws FinalizationPending if it can't be saved
   */
  deliver(
    job: Job,
    files: readonly StoredFile[],
    state: 'finalizing' | 'finished' | 'failed',
    quota?: readonly QuotaUse[],
  ): Promise<Job>
  /** @throws FinalizationPending if it can't be saved, or if another process has taken over the job */
  advance(job: Job, change: Change): Promise<void>
  /** Jobs with unsaved changes. */
  kept(): string[]
  /** Writes the unsaved changes of a job. @throws FinalizationPending */
  save(id: string): Promise<void>
}

export function createJournal({ store, owner, now, warn }: JournalDeps): Journal {
  /** Unsaved writes by job. Until they succeed, only this process knows the state of the job. */
  const unsaved = new Map<string, () => Promise<unknown>>()

  /** @param later what to write instead once the database works again */
  async function write<T>(
    id: string,
    work: () => Promise<T>,
    later: () => Promise<unknown> = work,
  ): Promise<T> {
    try {
      return await work()
    } catch (error) {
      unsaved.set(id, later)
      const reason = messageOf(error)
      throw new FinalizationPending(id, `Could not save the history: ${reason}`)
    }
  }

  return {
    async deliver(job, files, state, quota) {
      const time = now().getTime()
      const history = files.flatMap(file => toEntries(job, file, time))
      const steps = [HISTORY_STEP]
      const writeAs = (as: Delivery['state']) =>
        store.deliver(job.id, { state: as, owner, files, steps, history, quota, now: time })
      try {
        await write(
          job.id,
          () => writeAs(state),
          () => writeAs(unclaimed(state)),
        )
      } catch (error) {
        const stored = files.map(({ key, url }) => ({ key, url }))
        warn(messageOf(error), { finalizationId: job.id, requestId: job.requestId, stored })
        throw error
      }
      return { ...job, state, files, steps }
    },
    async advance(job, change) {
      const progress = { attempts: job.attempts, now: now().getTime(), ...change }
      const later = { ...progress, state: unclaimed(change.state) }
      const isOurs = await write(
        job.id,
        () => store.advance(job.id, owner, progress),
        () => store.advance(job.id, owner, later),
      )
      if (!isOurs) throw new FinalizationPending(job.id, 'Another server process has taken over the upload.')
    },
    kept: () => [...unsaved.keys()],
    async save(id) {
      const work = unsaved.get(id)
      if (!work) return
      await write(id, work)
      unsaved.delete(id)
    },
  }
}

/** A late write must not claim the job: `finalizing` is stored as `delivered`. */
function unclaimed<T extends string>(state: T | 'finalizing'): T | 'delivered' {
  return state === 'finalizing' ? 'delivered' : state
}

/** One entry for the file and one for each copy at a mirror. What describes the content is the same in all of them. */
function toEntries(job: Job, file: StoredFile, time: number): HistoryEntry[] {
  const { index, origin, url, key, size, contentType, sha256, deleteUrl, expiresAt, location } = file
  const { id: jobId, caller, requestId } = job
  const destination = file.destination ?? job.destination
  // Listed one by one, because V8 copies objects slowly.
  const entry: HistoryEntry = {
    index,
    origin,
    url,
    key,
    size,
    contentType,
    sha256,
    deleteUrl,
    expiresAt,
    location,
    time,
    jobId,
    destination,
    caller,
    requestId,
  }
  if (!file.mirrors) return [entry]
  const copies = file.mirrors.flatMap(({ destination, key, url, location, expiresAt }) =>
    url === undefined || key === undefined
      ? []
      : [{ ...entry, destination, key, url, location, expiresAt, deleteUrl: undefined }],
  )
  return [entry, ...copies]
}
