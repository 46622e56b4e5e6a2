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
    `All files were stored, but hook "tell" failed: exit code 1. Don't upload again: send finalizationId, or run "upload-server finalize".`,
  )
})
