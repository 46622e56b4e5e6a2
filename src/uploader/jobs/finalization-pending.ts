/** Everything is stored, but a post-upload step failed. The HTTP status is 424. */
export class FinalizationPending extends Error {
  readonly finalizationId: string
  readonly problem: string

  constructor(finalizationId: string, problem: string) {
    super(`Remote upload completed. Retry with finalizationId to finish without uploading again. ${problem}`)
    this.name = 'FinalizationPending'
    this.finalizationId = finalizationId
    this.problem = problem
  }
}
