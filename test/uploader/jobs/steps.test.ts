import { expect, it } from 'vitest'
import type { Job } from '../../../src/store/contract.ts'
import { FinalizationPending } from '../../../src/uploader/jobs/finalization-pending.ts'
import type { Hook } from '../../../src/uploader/jobs/hooks.ts'
import type { Journal } from '../../../src/uploader/jobs/journal.ts'
import { LONGEST_PAUSE_MS, runSteps } from '../../../src/uploader/jobs/steps.ts'

type Written = Parameters<Journal['advance']>[1]

const JOB: Job = {
  id: 'job-1',
  state: 'finalizing',
  createdAt: 0,
  owner: 'me',
  requestId: 'r1',
  caller: 'loopback',
  destination: 'local/Default',
  origins: [],
  files: [],
  steps: ['history'],
  attempts: 0,
  problem: undefined,
}

const hookOf = (name: string, program: string): Hook => ({ name, command: [program], timeoutMs: 20_000 })

/** What is written down of a job, and what comes of it. */
async function run(job: Job, hooks: readonly Hook[], ending = new AbortController().signal) {
  const written: Written[] = []
  const result = await runSteps(job, hooks, {
    env: { PATH: process.env['PATH'] },
    mask: text => text,
    warn: () => {},
    ending,
    journal: { advance: async (_job, change) => void written.push(change) },
  }).catch((error: unknown) => error)
  return { written, result }
}

it('each step is written down as it is done, and those of before are not done again', async () => {
  const job = { ...JOB, steps: ['history', 'hook:a'] }
  const { written, result } = await run(job, [hookOf('a', 'false'), hookOf('b', 'true'), hookOf('c', 'true')])
  expect(written).toEqual([
    { state: 'finalizing', steps: expect.anything() },
    { state: 'finished', steps: ['history', 'hook:a', 'hook:b', 'hook:c'] },
  ])
  expect(result).toMatchObject({ state: 'finished', steps: ['history', 'hook:a', 'hook:b', 'hook:c'] })
})

it.each([
  [0, 5000],
  [3, 40_000],
  [30, LONGEST_PAUSE_MS],
])(
  'what fails at attempt %i is put off for %i ms, with what was done before it',
  async (attempts, pauseMs) => {
    const { written, result } = await run({ ...JOB, attempts }, [hookOf('a', 'true'), hookOf('b', 'false')])
    expect(result).toBeInstanceOf(FinalizationPending)
    expect(written.at(-1)).toMatchObject({
      state: 'delivered',
      steps: ['history', 'hook:a'],
      attempts: attempts + 1,
      pauseMs,
    })
  },
)

it('what the end of the process cuts short is no attempt, so that the next start runs it first', async () => {
  const { written } = await run(JOB, [hookOf('a', 'true')], AbortSignal.abort())
  expect(written).toEqual([{ state: 'delivered', steps: ['history'], problem: expect.any(String) }])
})
