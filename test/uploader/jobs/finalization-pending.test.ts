import { expect, it } from 'vitest'
import { FinalizationPending } from '../../../src/uploader/jobs/finalization-pending.ts'

it('says what to retry, and why it is to be retried', () => {
  const error = new FinalizationPending('some-id', 'Hook "tell" failed: exit code 1')
  expect(error).toMatchObject({
    name: 'FinalizationPending',
    finalizationId: 'some-id',
    problem: 'Hook "tell" failed: exit code 1',
  })
  expect(error.message).toContain('finalizationId')
  expect(error.message).toMatch(/Hook "tell" failed: exit code 1$/)
})
