import { randomUUID } from 'node:crypto'
import type { Stored } from '../notes/move-pictures.ts'
import type { UploadRequest } from '../uploader/index.ts'
import type { Outcome } from '../uploader/input.ts'
import { FinalizationPending } from '../uploader/jobs/finalization-pending.ts'
import type { Opened } from './open.ts'
import { INTERRUPTION } from './terminal.ts'
import { baseUrlOf } from './upload-here.ts'

/**
 * Uploads inputs and says of each what became of it, in order, also when the signal cuts it short.
 *
 * @returns `pending`: all are stored, and what follows has failed
 */
export async function storeInputs(
  { config, mask, uploader }: Opened,
  request: Pick<UploadRequest, 'destination' | 'inputs' | 'caller' | 'signal' | 'accept'>,
): Promise<{ results: Stored[]; pending?: { id: string; problem: string } }> {
  const results: Stored[] = request.inputs.map(() => ({ error: INTERRUPTION }))
  if (results.length === 0 || request.signal.aborted) return { results }
  const onOutcome = (outcome: Outcome) => {
    results[outcome.index] = outcome.ok ? { url: outcome.url } : { error: mask(outcome.error.message) }
  }
  const baseUrl = baseUrlOf(config.settings.server)
  try {
    await uploader.upload({ ...request, baseUrl, requestId: randomUUID(), onOutcome })
  } catch (error) {
    if (error instanceof FinalizationPending)
      return { results, pending: { id: error.finalizationId, problem: mask(error.problem) } }
    if (!request.signal.aborted) throw error
  }
  return { results }
}
