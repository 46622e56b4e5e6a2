import { messageOf } from '../../errors.ts'
import type { Job } from '../../store/contract.ts'
import { FinalizationPending } from './finalization-pending.ts'
import type { Hook, HookDeps } from './hooks.ts'
import type { Journal } from './journal.ts'

const FIRST_PAUSE_MS = 5000
/** The longest time between two attempts at a job. */
export const LONGEST_PAUSE_MS = 10 * 60 * 1000
/** Maximum number of attempts at a hook that is not required, including the first. They take about 20 minutes. */
const MOST_TRIES = 8

export interface StepDeps extends HookDeps {
  readonly journal: Pick<Journal, 'advance'>
  /** Stops running hooks when the process ends. */
  readonly ending: AbortSignal
  warn(message: string, details?: object): void
}

/**
 * Runs the hooks that a job has not run yet. Its state must be `finalizing`, and its owner this process.
 *
 * @returns the finished job
 * @throws FinalizationPending if a required hook fails, or the progress of the job can't be saved
 */
export async function runSteps(job: Job, hooks: readonly Hook[], deps: StepDeps): Promise<Job> {
  const { journal, warn } = deps
  const steps = [...job.steps]
  let missed: string | undefined
  for (const hook of hooks) {
    const step = `hook:${hook.name}`
    if (steps.includes(step)) continue
    try {
      const { runHook } = await import('./hooks.ts')
      await runHook(hook, job, deps, deps.ending)
    } catch (error) {
      const problem = `Hook "${hook.name}" failed: ${messageOf(error)}`
      if (hook.required !== false) {
        if (missed !== undefined) warn(missed, { finalizationId: job.id, requestId: job.requestId })
        throw await postpone(job, steps, problem, deps)
      }
      missed ??= problem
      continue
    }
    steps.push(step)
    if (hook !== hooks.at(-1)) await journal.advance(job, { state: 'finalizing', steps })
  }
  if (missed !== undefined && job.attempts + 1 < MOST_TRIES)
    await postpone(job, steps, missed, deps) // which does not change the response
  else {
    if (missed !== undefined)
      warn(`${missed} The hook is not required and is not retried again.`, { requestId: job.requestId })
    await journal.advance(job, { state: 'finished', steps })
  }
  return { ...job, state: 'finished', steps }
}

async function postpone(
  job: Job,
  steps: string[],
  problem: string,
  { journal, ending, warn }: StepDeps,
): Promise<FinalizationPending> {
  warn(problem, { finalizationId: job.id, requestId: job.requestId })
  const { attempts } = job
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS)
  // A hook that was stopped by the shutdown counts as no attempt, so that it runs first after the restart.
  const pause = ending.aborted ? {} : { attempts: attempts + 1, pauseMs }
  await journal.advance(job, { state: 'delivered', steps, problem, ...pause }).catch(() => {})
  return new FinalizationPending(job.id, problem)
}
