import { text as readText } from 'node:stream/consumers'
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { type CommentOptions, prepareComment } from '../client/comments/comment.ts'
import { CLIPBOARD, type Entry, type EntryOptions, findEntries, NO_FILES } from '../client/entries.ts'
import { FORMATS, type OutputFormat } from '../client/reports/format.ts'
import { openReports, type ReportOptions, writeReports } from '../client/reports/reports.ts'
import { interruption, isFailure, type Result } from '../client/result.ts'
import { SENDING, type SendOptions } from '../client/sending/send.ts'
import { messageOf } from '../errors.ts'
import { readFolder } from '../payload/folder.ts'
import { type ChoiceAsSent, readChoice } from '../uploader/delivery/destinations.ts'
import {
  addDestinationOptions,
  configOption,
  endWith,
  keyOption,
  parseCount,
  parseDuration,
  parseServer,
} from './command.ts'
import { addCommentOptions } from './comment.ts'
import { EXIT, exitCodeOf } from './exit-code.ts'
import { startProgress } from './progress.ts'
import { commandFor, sayDead, sayFinish, sayRepeat } from './repeat.ts'
import { createResultPrinter, toFailureLines } from './result-printer.ts'
import { withSender } from './sender.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

interface UploadOptions
  extends CommonOptions,
    ReportOptions,
    CommentOptions,
    ChoiceAsSent,
    Omit<EntryOptions, 'isLiteral'>,
    Omit<SendOptions, 'server' | keyof ChoiceAsSent> {
  format: OutputFormat
  /** Name of the one file at the destination. */
  name?: string
  stdinList?: boolean
  allowEmpty?: boolean
  softFail?: boolean
  quiet?: boolean
  /** URL of a running server to send through. */
  server?: string
}

/** Longest delay of a timer in Node. */
const LONGEST_MS = 2 ** 31 - 1

/** Options that only apply with --server. */
const FOR_SERVER = ['concurrency', 'timeout', 'wait', 'job']

export function register(program: Command, terminal: Terminal): void {
  const command = program
    .command('upload')
    .description('upload files, directly or through a running server, and print one link per line')
    .addArgument(
      new Argument(
        '[file...]',
        'files, folders, glob patterns, URLs, or - for standard input (default: the clipboard)',
      ),
    )
    .addOption(configOption())
    .optionsGroup('Destination:')
  addDestinationOptions(command)
    .option('--path <folder>', 'folder for the files; replaces {path} in the key template')
    .option(
      '--expires <when>',
      'delete the files after this time: 90m, 12h, 14d, never, or an RFC 3339 timestamp',
    )
    .optionsGroup('Files:')
    .option('--name <name>', 'store the one file, or standard input, under this name')
    .option('--keep-folders', 'keep the folders of the files, as given on the command line, below --path')
    .option('--strip <n>', 'with --keep-folders: remove the first n folders', parseCount)
    .option('--stdin-list', 'read file names from standard input, separated by line breaks or NUL')
    .option('--allow-empty', 'exit with 0 if there is nothing to upload')
    .optionsGroup('Output:')
    .addOption(
      new Option('--format <format>', 'what to print on standard output').choices(FORMATS).default('url'),
    )
    .option('-q, --quiet', 'print no line per file on standard error, only failures')
    .option('--soft-fail', 'exit with 0 even if files could not be stored')
    .optionsGroup('Reports:')
    .option(
      '--github-output',
      'append url, urls, markdown, json, stored and failed to the file in GITHUB_OUTPUT',
    )
    .option('--github-summary', 'append Markdown to the file in GITHUB_STEP_SUMMARY')
    .option(
      '--gitlab-dotenv <file>',
      'write UPLOAD_URL, UPLOAD_URL_1…, UPLOAD_STORED and UPLOAD_FAILED for GitLab',
    )
    .option('--junit <file>', 'write a JUnit report with one test case per file')
    .optionsGroup('Pull request comment:')
    .option('--comment', 'create or update a comment on the pull request that shows the images')
    .option(
      '--compare <folder>',
      'with --comment: also show earlier images of the same names, from this folder',
    )
  addCommentOptions(command)
    .optionsGroup('Running server:')
    .option('--server <url>', 'upload through a running server', parseServer)
    .addOption(keyOption())
    .addOption(
      new Option('--concurrency <n>', 'number of parallel requests, 1 to 64')
        .argParser(parseConcurrency)
        .default(SENDING.concurrency),
    )
    .addOption(
      new Option(
        '--timeout <time>',
        'keep retrying transient failures for this long, such as 90s or 10m; 0 disables retries',
      )
        .argParser(text => Math.min(parseDuration(text), LONGEST_MS))
        .default(SENDING.timeout, '5m'),
    )
    .option('--wait', 'wait until the server is up, for at most --timeout')
    .option(
      '--job <id>',
      'ID of the job; within 24 hours, a job never stores a file twice (default: the ID of the CI run)',
    )
    .exitOverride(error => {
      if (error.exitCode !== EXIT.done) error.exitCode = EXIT.usage
      throw error
    })
    .addHelpText(
      'after',
      `
Examples:
  upload-server upload *.png                 one link per line, in the same order
  upload-server upload                       the image in the clipboard
  grim - | upload-server upload - --name screen.png
  upload-server upload a.png --format markdown --destination s3/blog
  upload-server upload --server https://img.example.com screenshots/ 'out/**/*.png'
  upload-server upload --keep-folders --strip 1 report/
  upload-server upload --comment --compare main/ shots/
  git diff -z --name-only | upload-server upload --stdin-list --allow-empty

Exit codes: 0 all files were stored, 1 none was stored, 2 wrong usage, 3 only some were stored, 4 the server can't be
reached, 5 the server rejected the upload key, 130 interrupted (Ctrl-C).`,
    )
    .action((files: string[], options: UploadOptions, command: Command) => {
      const given = FOR_SERVER.filter(name => command.getOptionValueSource(name) === 'cli')
      return endWith(terminal, upload(files, options, given, terminal, terminal.untilInterrupted()))
    })
}

function parseConcurrency(text: string): number {
  const count = parseCount(text)
  if (count < 1 || count > 64) throw new InvalidArgumentError('Must be a whole number from 1 to 64.')
  return count
}

/** An error in the command line. Nothing was uploaded. */
class UsageError extends Error {}

/**
 * `upload-server upload F…`: prints one link per line on standard output, in order, as soon as all links before it are
 * known.
 *
 * @param forServer the given options that require --server
 * @param signal Ctrl-C: uploads in progress are aborted, and what was stored is still reported
 * @returns the exit code
 */
async function upload(
  names: readonly string[],
  given: UploadOptions,
  forServer: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  try {
    const options = checkUsage(names, given, forServer)
    const entries = await findAll(names, options, terminal)
    if (entries.length === 0) {
      terminal.note(
        `There is nothing to upload.${options.allowEmpty ? '' : ' To accept that, add --allow-empty.'}`,
      )
      if (!options.allowEmpty) return options.softFail ? EXIT.done : EXIT.failed
    }
    return await uploadAll(entries, options, terminal, signal)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    terminal.note(terminal.mask(error.message))
    return EXIT.usage
  }
}

/** @returns the options, with the destination in the spelling of PicGo and PicList */
function checkUsage(
  names: readonly string[],
  options: UploadOptions,
  forServer: readonly string[],
): UploadOptions {
  // An empty name would mean the working directory with all its files.
  if ([...names, options.compare].includes(''))
    throw new UsageError('A file name is empty. Check whether a variable is unset.')
  if (names.indexOf('-') !== names.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  if (options.stdinList && names.includes('-'))
    throw new UsageError(
      'Standard input can be either a file (-) or a list of names (--stdin-list), not both.',
    )
  if (options.strip !== undefined && !options.keepFolders)
    throw new UsageError('--strip requires --keep-folders.')
  if (options.server === undefined && forServer.length > 0)
    throw new UsageError(`--${forServer[0]} requires --server.`)
  if (options.compare !== undefined && !options.comment) throw new UsageError('--compare requires --comment.')
  try {
    readFolder(options.path ?? '', '--path')
    return { ...options, ...readChoice(options) }
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** Finds the files to upload, in order. */
async function findAll(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
): Promise<readonly Entry[]> {
  const { path = '', keepFolders, strip, name, stdinList } = options
  const how = { path, ...(keepFolders && { keepFolders }), ...(strip !== undefined && { strip }) }
  if (names.length === 0 && !stdinList) return [{ ...CLIPBOARD, ...(path !== '' && { folder: path }) }]
  const entries = await findEntries(names, how, terminal)
  if (stdinList) {
    const listed = await readText(terminal.stdin)
    const lines = listed.split(listed.includes('\0') ? '\0' : /\r?\n/).filter(line => line !== '')
    entries.push(...(await findEntries(lines, { ...how, isLiteral: true }, terminal)))
  }
  const isNothing = ({ fault = '' }: Entry) => Object.values(NO_FILES).includes(fault)
  const found = options.allowEmpty ? entries.filter(entry => !isNothing(entry)) : entries
  if (name === undefined) return found
  const named = found.length === 1 ? found : found.filter(({ kind }) => kind === 'stdin')
  if (named.length === 0)
    throw new UsageError(`--name can be used with only one file, but there are ${found.length}.`)
  return found.map(entry => (named.includes(entry) ? { ...entry, fileName: name } : entry))
}

async function uploadAll(
  entries: readonly Entry[],
  options: UploadOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const begun = performance.now()
  const fail = (error: Error) => {
    throw new UsageError(error.message)
  }
  const reports = await openReports(options, terminal).catch(fail)
  const comment = await prepareComment(entries, options, terminal).catch(fail)
  const [only] = entries
  const progress = startProgress(
    entries.length === 1 ? `Uploading ${only?.name}` : `Uploading ${entries.length} files`,
    terminal,
  )
  const printer = createResultPrinter(entries, options, terminal, progress)
  const before: Result[] = comment.earlier.map(({ name }) => interruption(name))
  const settle = (index: number, result: Result) => void before.splice(index, 1, result)
  let dead: string | undefined
  try {
    if (entries.length > 0)
      await withSender(options, terminal, {}, async sender => {
        await sender.send(entries, signal, printer)
        await sender.send(comment.earlier, signal, { settle })
        dead = await sender.explainDead()
      })
  } finally {
    progress.stop()
  }
  const results = printer.close()
  const unwritten = await writeReports(reports, results, performance.now() - begun)
  sayWhatIsMissing(results, options, terminal)
  if (dead !== undefined) terminal.note(sayDead(dead, options, terminal))
  const isTold = await comment.tell(results, before, signal)
  for (const message of unwritten) terminal.note(message)
  const code = exitCodeOf(results) || (isTold && unwritten.length === 0 ? EXIT.done : EXIT.failed)
  return options.softFail && code !== EXIT.interrupted ? EXIT.done : code
}

function sayWhatIsMissing(results: readonly Result[], options: UploadOptions, terminal: Terminal): void {
  const failed = results.filter(isFailure)
  for (const line of toFailureLines(failed)) terminal.note(oneLine(line))
  const pending = [...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId))]
  if (pending.length > 0) terminal.note(sayFinish(pending, options, terminal))
  if (failed.length === 0) return
  const isClipboard = results[0]?.name === CLIPBOARD.name && results.length === 1
  const again = isClipboard ? [] : failed.map(({ name }) => name)
  const { config, server, key, picbed, configName, path, expires, keepFolders, strip, format, name } = options
  const { timeout, wait, job, githubOutput, githubSummary } = options
  const given = {
    config,
    picbed,
    'config-name': configName,
    path,
    expires,
    'keep-folders': keepFolders,
    strip,
    format: format === 'url' ? undefined : format,
    server,
    key,
    name: again.length === 1 || again.includes('-') ? name : undefined,
    timeout: timeout === SENDING.timeout ? undefined : `${timeout / 1000}s`,
    wait,
    job,
    'github-output': githubOutput,
    'github-summary': githubSummary,
  }
  const line = commandFor('upload', again, given, terminal)
  terminal.note(`${failed.length} of ${results.length} files failed.${sayRepeat(line)}`)
}
