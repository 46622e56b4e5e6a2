import { messageOf } from '../errors.ts'
import { poll } from '../flow/poll.ts'
import type { Upload } from '../store/contract.ts'
import type { Database } from '../store/database.ts'
import type { Owner } from '../store/owners.ts'
import { advance, takeStored } from '../store/pending.ts'
import { type NewUpload, readUpload } from '../store/upload-rows.ts'
import { type Finished, finish, type UploadEnd } from '../store/uploads.ts'
import type { Hook, HookDeps } from './hooks.ts'

const FIRST_PAUSE_MS = 5000
/** The longest time between two attempts at an upload. */
export const LONGEST_PAUSE_MS = 10 * 60 * 1000
/** Maximum number of attempts at a hook that is not required, including the first. They take about 20 minutes. */
const MOST_TRIES = 8

/** Everything is stored, but a post-upload step failed. The HTTP status is 424. */
export class FinalizationPending extends Error {
  readonly finalizationId: string
  readonly problem: string

  /** @param problem a sentence, such as `Hook "announce" failed: exit code 1` */
  constructor(finalizationId: string, problem: string) {
    const cause = `${problem.charAt(0).toLowerCase()}${problem.slice(1).replace(/\.$/, '')}`
    super(
      `All files were stored, but ${cause}. Don't upload again: send finalizationId, or run "upload-server finalize".`,
    )
    this.name = 'FinalizationPending'
    this.finalizationId = finalizationId
    this.problem = problem
  }
}

/** Ends uploads: saves what they have stored, then runs each hook once. */
export interface Finalizer {
  /**
   * Saves how an upload ended. What the database does not accept is kept in memory and saved later.
   *
   * @param key its `Idempotency-Key`
   * @throws FinalizationPending if everything is stored, and that can't be saved
   */
  save(upload: NewUpload, end: UploadEnd, key?: string): Promise<Finished>
  /**
   * Saves what could not be saved of the upload with an `Idempotency-Key`.
   *
   * @throws FinalizationPending if everything is stored; UploadError otherwise
   */
  saveFor(key: string): Promise<void>
  /** Has an upload fail that may be in the database, although its beginning got no response. */
  drop(upload: NewUpload): void
  /**
   * Runs the hooks of an upload whose files are all stored.
   *
   * @param baseUrl of links to this server. Default: the one of the configuration
   * @param hooks those of the configuration with which it began. Default: the current ones
   * @returns the ended upload; undefined if there is none with this ID whose files are all stored; `elsewhere` if another process
   *   runs them
   * @throws FinalizationPending if a required hook fails, or the progress can't be saved
   */
  runHooks(id: string, baseUrl?: string, hooks?: readonly Hook[]): Promise<Upload | undefined | 'elsewhere'>
  /**
   * The same for a client that asks for it. Waits while another request or process makes an attempt, and makes its own if that
   * one fails.
   *
   * @returns the upload with its links
   */
  retry(id: string, baseUrl: string | undefined, signal: AbortSignal): Promise<Upload | undefined>
  /** Saves what could not be saved before. */
  saveKept(): Promise<void>
  /** From now on, hooks of this configuration run. @param withLinks see links.ts; without `baseUrl`, its own one holds */
  adopt(hooks: readonly Hook[], withLinks: (upload: Upload, baseUrl?: string) => Upload): void
  /** Settles when no hook runs. */
  idle(): Promise<void>
}

export interface FinalizerDeps extends HookDeps {
  readonly database: Database
  readonly owner: Owner
  /** Aborted when the process ends. */
  readonly ending: AbortSignal
  warn(message: string, details?: object): void
}

interface Unsaved {
  readonly upload: NewUpload
  readonly end: UploadEnd
  /** The `Idempotency-Key` of the request. */
  readonly key?: string | undefined
}

export function createFinalizer(deps: FinalizerDeps): Finalizer {
  const { database, owner, warn } = deps
  let current: readonly Hook[] = []
  let withLinks = (upload: Upload, _baseUrl?: string) => upload
  /** Ends of uploads that the database has not accepted. Until then, only this process knows them. */
  const unsaved = new Map<string, Unsaved>()
  /** Uploads whose hooks this process runs. There is one attempt at a time, and all requests wait for it. */
  const running = new Map<string, Promise<Upload | undefined | 'elsewhere'>>()

  async function saveOnce(one: Unsaved): Promise<Finished> {
    const { upload, end } = one
    try {
      const finished = await finish(database, upload, end)
      unsaved.delete(upload.id)
      return finished
    } catch (error) {
      unsaved.set(upload.id, one)
      if (end.state === 'failed') throw error
      throw new FinalizationPending(upload.id, `Could not save the history: ${messageOf(error)}`)
    }
  }

  async function attempt(
    id: string,
    baseUrl: string | undefined,
    hooks: readonly Hook[],
  ): Promise<Upload | undefined | 'elsewhere'> {
    const kept = unsaved.get(id)
    if (kept) await saveOnce(kept)
    await owner.keepAlive()
    const upload = await takeStored(database, id, owner.id)
    if (upload) return runSteps(upload, hooks, one => withLinks(one, baseUrl), deps)
    const found = await database.read(db => readUpload(db, id))
    if (found?.state === 'done') return found
    // Another process may know that everything is stored, and may not have been able to save it.
    return found?.state === 'stored' || found?.state === 'uploading' ? 'elsewhere' : undefined
  }

  function runHooks(
    id: string,
    baseUrl?: string,
    hooks = current,
  ): Promise<Upload | undefined | 'elsewhere'> {
    const run = running.get(id) ?? attempt(id, baseUrl, hooks).finally(() => running.delete(id))
    running.set(id, run)
    return run
  }

  return {
    save: (upload, end, key) =>
      saveOnce({ upload, end, key }).catch(error => {
        const { id, requestId } = upload
        const stored = end.files.map(({ key, url }) => ({ key, url }))
        warn(messageOf(error), { finalizationId: id, requestId, stored })
        // The response says which files are stored. It does not fail because the history can only be saved later.
        if (end.state === 'failed') return { files: end.files, lost: [] }
        throw error
      }),
    async saveFor(key) {
      for (const one of unsaved.values()) if (one.key === key) await saveOnce(one)
    },
    drop: upload => void unsaved.set(upload.id, { upload, end: { state: 'failed', files: [], failed: [] } }),
    runHooks,
    async retry(id, baseUrl, signal) {
      await running.get(id)?.catch(() => {})
      const { result } = await poll(async () => {
        const result = await runHooks(id, baseUrl)
        return result === 'elsewhere' ? undefined : { result }
      }, signal)
      return result && withLinks(result, baseUrl)
    },
    async saveKept() {
      for (const one of unsaved.values()) {
        await saveOnce(one).catch(() => {})
        if (database.problem() !== undefined) return
      }
    },
    adopt(hooks, links) {
      current = hooks
      withLinks = links
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running.values())
    },
  }
}

async function runSteps(
  upload: Upload,
  hooks: readonly Hook[],
  withLinks: (upload: Upload) => Upload,
  deps: FinalizerDeps,
): Promise<Upload> {
  const { warn, ending } = deps
  const steps = [...upload.steps]
  let missed: string | undefined
  for (const hook of hooks) {
    const step = `hook:${hook.name}`
    if (steps.includes(step)) continue
    try {
      const { runHook } = await import('./hooks.ts')
      await runHook(hook, withLinks(upload), deps, ending)
    } catch (error) {
      const problem = `Hook "${hook.name}" failed: ${messageOf(error)}`
      if (hook.required !== false) {
        if (missed !== undefined) warn(missed, { finalizationId: upload.id, requestId: upload.requestId })
        throw await postpone(upload, steps, problem, deps)
      }
      missed ??= problem
      continue
    }
    steps.push(step)
    if (hook !== hooks.at(-1)) await progress(upload, { state: 'stored', steps }, deps)
  }
  if (missed !== undefined && upload.attempts + 1 < MOST_TRIES)
    await postpone(upload, steps, missed, deps) // which does not change the response
  else {
    if (missed !== undefined)
      warn(`${missed} The hook is not required and is not retried again.`, { requestId: upload.requestId })
    await progress(upload, { state: 'done', steps }, deps)
  }
  return { ...upload, state: 'done', steps }
}

async function progress(
  { id, attempts }: Upload,
  change: { readonly state: 'stored' | 'done'; readonly steps: readonly string[] },
  { database, owner }: FinalizerDeps,
): Promise<void> {
  let isOurs: boolean
  try {
    isOurs = await advance(database, id, owner.id, { attempts, ...change })
  } catch (error) {
    throw new FinalizationPending(id, `Could not save the progress: ${messageOf(error)}`)
  }
  if (!isOurs) throw new FinalizationPending(id, 'Another server process has taken over the upload.')
}

async function postpone(
  { id, requestId, attempts }: Upload,
  steps: readonly string[],
  problem: string,
  { database, owner, ending, warn }: FinalizerDeps,
): Promise<FinalizationPending> {
  warn(problem, { finalizationId: id, requestId })
  // A hook that was stopped by the shutdown counts as no attempt, so that it runs first after the restart.
  const pauseMs = ending.aborted ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS)
  const change = {
    state: 'stored',
    steps,
    problem,
    pauseMs,
    attempts: attempts + (ending.aborted ? 0 : 1),
  } as const
  await advance(database, id, owner.id, change).catch(() => {})
  return new FinalizationPending(id, problem)
}
