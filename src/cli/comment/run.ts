import { readImages } from '../../client/reports/read-results.ts'
import type { Uploads } from '../../client/uploads.ts'
import { readChoice } from '../../uploader/destinations.ts'
import { type Call, UsageError } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import { openReviewing } from '../reviewing.ts'
import type { Terminal } from '../terminal.ts'
import { withUploads } from '../with-uploads.ts'
import type { flags } from './index.ts'

/** `upload-server comment [RESULTS]`: writes or prints the comment. */
export async function run({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const signal = terminal.untilInterrupted()
  const { dryRun: isDryRun = false, server, destination, picbed, config, baseline } = options
  const isNamed = [server, destination, picbed, config].some(one => one !== undefined)
  if (baseline !== undefined && !isNamed)
    throw new UsageError('--baseline requires --server, --destination or --config.')
  const files = words.length > 0 ? words : ['-']
  if (files.indexOf('-') !== files.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  const lists = []
  for (const file of files) lists.push(await readImages(file, terminal))
  const images = lists.flatMap(list => list.images)
  const reviewImages = await openReviewing({ ...options, comment: !isDryRun }, terminal, signal)
  const review = (uploads?: Uploads) =>
    reviewImages({
      ...{ images, uploads, isDryRun },
      store: async () => images.map(({ result }) => result),
    })
  const { hasFailed, isRejected, toMarkdown } = isNamed
    ? await withUploads({ ...options, ...readChoice(options) }, terminal, {}, review)
    : await review()
  if (isDryRun) terminal.print(toMarkdown().trimEnd())
  if (signal.aborted) return EXIT.interrupted
  return hasFailed || isRejected ? EXIT.failed : EXIT.done
}
