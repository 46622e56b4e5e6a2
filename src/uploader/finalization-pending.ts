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
