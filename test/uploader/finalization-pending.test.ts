import { expect, it } from 'vitest'
import { FinalizationPending } from '../../src/uploader/finalization-pending.ts'

it('says what to retry, and why it is to be retried', () => {
  const error = new FinalizationPending('some-id', 'Hook "tell" failed: exit code 1')
  expect(error).toMatchObject({
    name: 'FinalizationPending',
    finalizationId: 'some-id',
    problem: 'Hook "tell" failed: exit code 1',
  })
  expect(error.message).toBe(
    'All files were uploaded, but hook "tell" failed: exit code 1. Retry with finalizationId to finish without uploading again.',
  )
})
