import { openComment, TITLE } from '../../client/comments/comment.ts'
import { toBody } from '../../client/comments/comment-body.ts'
import { findJob } from '../../client/comments/pull-request.ts'
import { reviewResults } from '../../client/reports/pairs.ts'
import { readResults } from '../../client/reports/read-results.ts'
import type { Call } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import type { Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** `upload-server comment [RESULTS]`: writes or prints the comment. */
export async function run(
  { words: [file], options: { before, dryRun, ...options } }: Call<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  const signal = terminal.untilInterrupted()
  const results = await readResults(file ?? '-', terminal)
  const review =
    before === undefined ? undefined : reviewResults(before, await readResults(before, terminal), results)
  if (dryRun) {
    terminal.print(toBody({ title: options.commentTitle ?? TITLE }, results, review).trimEnd())
    return 0
  }
  const write = await openComment(options, await findJob(terminal.env), terminal)
  try {
    await write({ results, review }, signal)
    return 0
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted
    throw error
  }
}
