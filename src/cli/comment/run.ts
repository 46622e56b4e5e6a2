import { openComment, TITLE } from '../../client/comments/comment.ts'
import { toBody } from '../../client/comments/comment-body.ts'
import { findJob } from '../../client/comments/pull-request.ts'
import { createFetch } from '../../client/fetch-link.ts'
import { comparePixels } from '../../client/reports/compare-links.ts'
import { reviewResults } from '../../client/reports/pairs.ts'
import { readResults } from '../../client/reports/read-results.ts'
import type { Result } from '../../client/result.ts'
import { comparePictures } from '../../pictures/compare.ts'
import { type Call, UsageError } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import type { Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** `upload-server comment [RESULTS]`: writes or prints the comment. */
export async function run(
  { words, options: { compare, dryRun, threshold = 0, server, ...options } }: Call<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  const signal = terminal.untilInterrupted()
  const files = words.length > 0 ? words : ['-']
  if (files.indexOf('-') !== files.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  const lists: Result[][] = []
  for (const file of files) lists.push(await readResults(file, terminal))
  const results = lists.flat()
  const hosts = server === undefined ? [] : [new URL(server).host]
  const review =
    compare === undefined
      ? undefined
      : await comparePixels(
          reviewResults(compare, await readResults(compare, terminal), results),
          { findDifference: comparePictures, threshold, fetch: createFetch(terminal, hosts) },
          terminal,
          signal,
        )
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
