import { openComment, TITLE } from '../../client/comments/comment.ts'
import { toBody } from '../../client/comments/comment-body.ts'
import { compare } from '../../client/reports/pairs.ts'
import { readResults } from '../../client/reports/read-results.ts'
import type { Result } from '../../client/result.ts'
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
  const earlier = before === undefined ? undefined : await readResults(before, terminal)
  const locate = (results: readonly Result[]) => results.map(result => ({ result }))
  const comparison = earlier && compare(locate(earlier), locate(results))
  if (dryRun) {
    terminal.print(toBody(options.commentTitle ?? TITLE, results, comparison).trimEnd())
    return 0
  }
  const write = await openComment(options, terminal)
  try {
    await write(results, comparison, signal)
    return 0
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted
    throw error
  }
}
