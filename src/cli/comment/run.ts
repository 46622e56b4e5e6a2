import type { Image } from '../../client/reports/images.ts'
import { readImages } from '../../client/reports/read-results.ts'
import type { Uploads } from '../../client/uploads.ts'
import { readChoice } from '../../uploader/destinations.ts'
import { type Call, UsageError } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import { hasStorage } from '../review-flags.ts'
import { openReviewing } from '../reviewing.ts'
import type { Terminal } from '../terminal.ts'
import { withUploads } from '../with-uploads.ts'
import type { flags } from './index.ts'

/** `upload-server comment [RESULTS]`: writes or prints the comment. */
export async function run({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const signal = terminal.untilInterrupted()
  const { dryRun = false } = options
  const files = words.length > 0 ? words : ['-']
  if (files.indexOf('-') !== files.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  const lists: (readonly Image[])[] = []
  for (const file of files) lists.push((await readImages(file, terminal)).images)
  const images = lists.flat()
  const results = images.map(({ result }) => result)
  const reviewing = await openReviewing({ ...options, comment: !dryRun }, terminal, signal)
  const review = async (uploads?: Uploads) => {
    await reviewing.compare(images, uploads, { note: terminal.note, draws: !dryRun })
    return reviewing.finish(results, dryRun ? undefined : uploads)
  }
  const { hasFailed, isRejected, toMarkdown } = hasStorage(options)
    ? await withUploads({ ...options, ...readChoice(options) }, terminal, {}, review)
    : await review()
  if (dryRun) terminal.print(toMarkdown().trimEnd())
  if (signal.aborted) return EXIT.interrupted
  return hasFailed || isRejected ? EXIT.failed : EXIT.done
}
