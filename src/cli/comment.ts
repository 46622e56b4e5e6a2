import { type CommentOptions, openComment, TITLE } from '../client/comments/comment.ts'
import { toBody } from '../client/comments/comment-body.ts'
import { compare } from '../client/reports/pairs.ts'
import { readResults } from '../client/reports/read-results.ts'
import type { Result } from '../client/result.ts'
import { type Command, Option } from '../packages/commander.ts'
import { endWith } from './command.ts'
import { EXIT } from './exit-code.ts'
import type { Terminal } from './terminal.ts'

interface CommentArguments extends Omit<CommentOptions, 'comment' | 'compare'> {
  /** File with the results of the earlier images. */
  before?: string
  dryRun?: boolean
}

/** Options of every command that writes a comment. */
export function addCommentOptions(command: Command): Command {
  return command
    .option('--pr <url>', 'URL of the pull request (default: the one of the CI job)')
    .addOption(new Option('--pull <url>', 'deprecated: use --pr').hideHelp().conflicts('pr'))
    .option(
      '--comment-name <name>',
      'name that identifies the comment, so that each job updates its own (default: the name of the CI job)',
    )
    .option('--comment-title <title>', 'heading of the comment (default: Pictures)')
    .addOption(
      new Option(
        '--comment-token <token>',
        'API token of the Git host (default: the token of the CI job)',
      ).env('UPLOAD_COMMENT_TOKEN'),
    )
}

export function register(program: Command, terminal: Terminal): void {
  const command = program
    .command('comment')
    .argument('[results]', 'output file of "upload --format json", or - for standard input (default: -)')
    .option(
      '--before <results>',
      'output file of an earlier upload; images of the same path are shown side by side',
    )
    .option('--dry-run', 'print the comment instead of posting it')
  addCommentOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  upload-server upload shots/ --format json > shots.json
  upload-server comment shots.json           in CI, on the pull request of the job
  upload-server comment shots.json --before main.json --pr https://github.com/me/app/pull/7

Supports GitHub, GitLab, Gitea and Forgejo. Parallel jobs write separate comments. If the job does not belong to a pull
request, no comment is written and the exit code is 0.`,
    )
    .action((file: string | undefined, options: CommentArguments) =>
      endWith(terminal, comment(file, options, terminal, terminal.untilInterrupted())),
    )
}

async function comment(
  file: string | undefined,
  { before, dryRun, ...options }: CommentArguments,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
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
