import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { findJob, readPullAddress } from '../comments/pull-request.ts'
import type { Written } from '../comments/write.ts'
import { fromEnvironment } from '../http/proxy/outgoing.ts'
import { endWith } from './command.ts'
import { toBody } from './comment-body.ts'
import { findEarlier } from './earlier.ts'
import type { Entry } from './entries.ts'
import type { Result } from './result.ts'
import { INTERRUPTED, oneLine, type Terminal } from './terminal.ts'

export interface CommentOptions {
  /** Writes the pictures into a comment at the pull request. */
  comment?: boolean
  /** Folder with earlier pictures, which stand beside those of now. */
  compare?: string
  /** Address of the pull request's page. */
  pull?: string
  commentName?: string
  commentTitle?: string
  commentToken?: string
}

interface Given extends Omit<CommentOptions, 'comment' | 'compare'> {
  /** File with the results of the pictures before. */
  before?: string
  dryRun?: boolean
}

/** Most that is read of results, bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** Options of every command that writes a comment. */
export function addCommentOptions(command: Command): Command {
  return command
    .option('--pull <address>', "page of the pull request; default: that of the CI host's job")
    .option('--comment-name <name>', 'tells the comment from those of other jobs; default: name of the job')
    .option('--comment-title <title>', 'its heading (default: Pictures)')
    .addOption(
      new Option('--comment-token <token>', 'token of the forge; default: that of the CI host').env(
        'UPLOAD_COMMENT_TOKEN',
      ),
    )
}

export function register(program: Command, terminal: Terminal): void {
  const command = program
    .command('comment')
    .description('write pictures into a comment at a pull request, or bring it up to date')
    .argument('[results]', 'file that "upload --format json" has written; none or -: standard input')
    .option('--before <results>', 'the same of earlier pictures: those of equal names stand side by side')
    .option('--dry-run', 'print the comment and write nothing')
  addCommentOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  upload-server upload shots/ --format json > shots.json
  upload-server comment shots.json           in CI, which says where
  upload-server comment shots.json --before main.json --pull https://github.com/me/app/pull/7

GitHub, GitLab, Gitea and Forgejo. Jobs side by side write comments of their own. Where the job is about no pull request,
nothing is done and the exit code is 0.`,
    )
    .action((file: string | undefined, options: Given) =>
      endWith(terminal, comment(file, options, terminal, terminal.untilInterrupted())),
    )
}

async function comment(
  file: string | undefined,
  { before, dryRun, ...options }: Given,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const results = await readResults(file ?? '-', terminal)
  const earlier = before === undefined ? undefined : await readResults(before, terminal)
  if (dryRun) {
    terminal.print(toBody(options.commentTitle ?? TITLE, results, earlier).trimEnd())
    return 0
  }
  const write = await openComment(options, terminal)
  try {
    await write(results, earlier, signal)
    return 0
  } catch (error) {
    if (signal.aborted) return INTERRUPTED
    throw error
  }
}

const TITLE = 'Pictures'

const SAID: Readonly<Record<Written, string>> = {
  created: 'A comment was written.',
  updated: 'The comment was brought up to date.',
  unchanged: 'The comment says so already.',
  stale: 'A later run has written the comment already.',
}

/**
 * Finds where a comment goes and with which token, before anything is uploaded.
 *
 * @returns what writes it, and says what became of it
 * @throws Error when that is not known
 */
export async function openComment(
  { pull, commentName, commentTitle = TITLE, commentToken }: CommentOptions,
  terminal: Terminal,
): Promise<
  (results: readonly Result[], before: readonly Result[] | undefined, signal: AbortSignal) => Promise<void>
> {
  const job = await findJob(terminal.env)
  const pullRequest = pull === undefined ? job?.pullRequest : readPullAddress(pull)
  if (pullRequest === undefined) {
    if (job === undefined)
      throw new Error('Which pull request? No CI host that is known says so: name its page with --pull.')
    return async () => terminal.note('This job is about no pull request, so no comment is written.')
  }
  const { GITHUB_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, FORGEJO_TOKEN } = terminal.env
  const ofForge = { github: GITHUB_TOKEN, gitlab: GITLAB_TOKEN, gitea: GITEA_TOKEN || FORGEJO_TOKEN }[
    pullRequest.forge
  ]
  // A job's own token is for its own forge.
  const isElsewhere =
    job?.pullRequest !== undefined && new URL(job.pullRequest.api).origin !== new URL(pullRequest.api).origin
  const token = commentToken || (isElsewhere ? undefined : job?.token || ofForge)
  if (!token)
    throw new Error(
      `A comment needs a token of ${new URL(pullRequest.api).host}: give the job ${TOKENS[pullRequest.forge]} or UPLOAD_COMMENT_TOKEN.`,
    )
  terminal.learn([token])
  const name = commentName ?? job?.name ?? ''
  return async (results, before, signal) => {
    const body = toBody(commentTitle, results, before)
    const request = {
      pullRequest,
      token,
      name,
      run: job?.run ?? 0,
      body,
      outgoing: fromEnvironment(terminal.env),
    }
    const { writeComment } = await import('../comments/write.ts')
    const written = await writeComment(request, signal)
    terminal.note(SAID[written])
  }
}

/** The comment of an upload. */
export interface UploadComment {
  /** What is to be uploaded as well. */
  readonly earlier: readonly Entry[]
  /** @returns false when it was not written, which has been said */
  tell(results: readonly Result[], earlier: readonly Result[], signal: AbortSignal): Promise<boolean>
}

/** Finds out before an upload what its comment takes. */
export async function prepareComment(
  entries: readonly Entry[],
  options: CommentOptions,
  terminal: Terminal,
): Promise<UploadComment> {
  if (!options.comment) return { earlier: [], tell: async () => true }
  const write = await openComment(options, terminal)
  const { compare } = options
  const found = compare === undefined ? undefined : await findEarlier(compare, entries, terminal)
  return {
    earlier: found?.entries ?? [],
    async tell(results, earlier, signal) {
      const { after, before } = found?.conclude(earlier, results) ?? { after: results, before: undefined }
      try {
        await write(after, before, signal)
        return true
      } catch (error) {
        const { message } = error as Error
        terminal.note(oneLine(terminal.mask(`The comment was not written: ${message}`)))
        return false
      }
    },
  }
}

const TOKENS = {
  github: 'GITHUB_TOKEN',
  gitlab: 'GITLAB_TOKEN (CI_JOB_TOKEN may not write comments)',
  gitea: 'GITEA_TOKEN',
} as const

/** What `upload --format json` or `ndjson` has printed. */
async function readResults(name: string, terminal: Terminal): Promise<Result[]> {
  const text = await (name === '-' ? readAll(terminal.stdin) : readFileOf(resolve(terminal.cwd, name)))
  const shown = name === '-' ? 'Standard input' : oneLine(name)
  const fail = () => new Error(`${shown} is not what "upload-server upload --format json" prints.`)
  try {
    const isList = text.trimStart().startsWith('[')
    const found: unknown[] = isList
      ? JSON.parse(text)
      : text
          .split('\n')
          .filter(line => line.trim() !== '')
          .map(line => JSON.parse(line))
    if (found.length === 0 && text.trim() === '') throw fail()
    return found.map(toResult)
  } catch {
    throw fail()
  }
}

/** Only links of the web become links. */
function toResult(value: unknown): Result {
  const { name, url, error, ...more } = value as Record<string, unknown>
  const isLink = typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url)
  if (typeof name !== 'string' || (url !== undefined && !isLink)) throw new Error('no result')
  const facts = ['size', 'width', 'height'].flatMap(key =>
    Number.isSafeInteger(more[key]) ? [[key, more[key]] as const] : [],
  )
  const words = ['sha256', 'type', 'code', 'finalizationId'].flatMap(key =>
    typeof more[key] === 'string' ? [[key, more[key]] as const] : [],
  )
  return {
    name,
    ...(isLink && { url }),
    ...(error !== undefined && { error: String(error) }),
    ...Object.fromEntries([...facts, ...words]),
  }
}

async function readFileOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    return await readAll(file.createReadStream({ autoClose: false }))
  } finally {
    await file.close()
  }
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > MOST_BYTES) throw new Error('These results are larger than 64 MiB.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
