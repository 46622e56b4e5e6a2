import { prepareComment } from '../client/comments/comment.ts'
import { CLIENT_DEFAULTS } from '../client/create-client.ts'
import { CLIPBOARD, type Entry, findEntries, NO_FILES } from '../client/entries.ts'
import { readFileList } from '../client/file-list.ts'
import { FORMATS } from '../client/reports/format.ts'
import { openReports, writeReports } from '../client/reports/reports.ts'
import { isFailure, type Result } from '../client/result.ts'
import { uploadAll as uploadSilently } from '../client/uploads.ts'
import { messageOf } from '../errors.ts'
import { Argument, type Command, Option } from '../packages/commander.ts'
import {
  addDestinationOptions,
  configOption,
  endWith,
  keyOption,
  onceOnly,
  parseCount,
  parseServer,
  tokenFromOption,
} from './command.ts'
import { addCommentOptions } from './comment.ts'
import { notifyOf, tellDesktop } from './desktop.ts'
import { EXIT, exitCodeOf } from './exit-code.ts'
import { startProgress } from './progress.ts'
import { commandFor, describeUnreachable, pendingOf, sayFinish, sayRepeat } from './repeat.ts'
import { createResultPrinter, toFailureLines } from './result-printer.ts'
import { oneLine, type Terminal } from './terminal.ts'
import {
  checkUsage,
  optionsForServer,
  parseConcurrency,
  parseTimerDelay,
  renamed,
  type UploadOptions,
  UsageError,
  withPresentNames,
} from './upload-options.ts'
import { withUploads } from './with-uploads.ts'

export function register(program: Command, terminal: Terminal): void {
  const command = program
    .command('upload')
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
    .option('--strip-components <n>', 'with --keep-folders: remove the first n folders', parseCount)
    .addOption(renamed('--strip <n>', 'stripComponents').argParser(parseCount))
    .addOption(
      new Option(
        '--files-from <file>',
        'also upload the files named in this file, or in standard input (-), separated by line breaks or NUL',
      ).argParser(onceOnly),
    )
    .addOption(renamed('--stdin-list', 'filesFrom'))
    .option('--allow-empty', 'exit with 0 if there is nothing to upload')
    .optionsGroup('Output:')
    .addOption(
      new Option('--format <format>', 'what to print on standard output').choices(FORMATS).default('url'),
    )
    .option('--copy', 'copy the links to the clipboard')
    .option('--notify', 'show a desktop notification with the result')
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
      'with --comment: also show earlier images of the same paths, from this folder',
    )
  addCommentOptions(command)
    .optionsGroup('Running server:')
    .option('--server <url>', 'upload through a running server', parseServer)
    .addOption(keyOption())
    .addOption(tokenFromOption())
    .addOption(
      new Option('--concurrency <n>', 'number of parallel requests, 1 to 64')
        .argParser(parseConcurrency)
        .default(CLIENT_DEFAULTS.concurrency),
    )
    .addOption(
      new Option(
        '--retry-max-time <time>',
        'keep retrying transient failures for this long, such as 90s or 10m; 0 disables retries',
      )
        .argParser(parseTimerDelay)
        .default(CLIENT_DEFAULTS.retryFor, '5m'),
    )
    .addOption(renamed('--timeout <time>', 'retryMaxTime').argParser(parseTimerDelay))
    .option('--wait', 'wait until the server is up, for at most --retry-max-time')
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
  grim - | upload-server upload - --name screen.png --copy --notify
  upload-server upload a.png --format markdown --destination s3/blog
  upload-server upload --server https://img.example.com screenshots/ 'out/**/*.png'
  upload-server upload --server https://img.example.com --token-from github-actions shots/
  upload-server upload --server https://img.example.com --token-from ./token.sh shots/
  upload-server upload --keep-folders --strip-components 1 report/
  upload-server upload --comment --compare main/ shots/
  git diff -z --name-only | upload-server upload --files-from - --allow-empty

Exit codes: 0 all files were stored, 1 none was stored, 2 wrong usage, 3 only some were stored, 4 the server can't be
reached, 5 the server rejected the upload key or token, or there is no token, 130 interrupted (Ctrl-C).`,
    )
    .action((files: string[], typed: UploadOptions, command: Command) => {
      const forServer = optionsForServer(command)
      const options = withPresentNames(typed)
      return endWith(terminal, upload(files, options, forServer, terminal, terminal.untilInterrupted()))
    })
}

/**
 * `upload-server upload F…`: prints one link per line on standard output, in order, as soon as all links before it are
 * known.
 *
 * @param forServer the given options that require --server, as `--NAME`
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
    if (given.notify) await notifyOf('The upload failed', messageOf(error), terminal)
    if (!(error instanceof UsageError)) throw error
    terminal.note(terminal.mask(error.message))
    return EXIT.usage
  }
}

/** Finds the files to upload, in order. */
async function findAll(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
): Promise<readonly Entry[]> {
  const { path = '', keepFolders, stripComponents, name, filesFrom } = options
  const how = {
    path,
    ...(keepFolders && { keepFolders }),
    ...(stripComponents !== undefined && { stripComponents }),
  }
  if (names.length === 0 && filesFrom === undefined)
    return [{ ...CLIPBOARD, ...(path !== '' && { folder: path }) }]
  const listed =
    filesFrom === undefined
      ? []
      : await readFileList(filesFrom, terminal).catch((error: unknown) => {
          throw new UsageError(messageOf(error))
        })
  const entries = await findEntries(names, how, terminal)
  entries.push(...(await findEntries(listed, { ...how, isLiteral: true }, terminal)))
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
  const comment = await prepareComment(entries, options, terminal, signal).catch(fail)
  const [only] = entries
  const progress = startProgress(
    entries.length === 1 ? `Uploading ${only?.name}` : `Uploading ${entries.length} files`,
    terminal,
  )
  const printer = createResultPrinter(entries, options, terminal, progress)
  let before: readonly Result[] = []
  let dead: string | undefined
  try {
    if (entries.length > 0)
      await withUploads(options, terminal, {}, async uploads => {
        for await (const { index, ...result } of uploads.upload(entries, signal, printer))
          printer.settle(index, result)
        before = await uploadSilently(uploads, comment.earlier, signal)
        dead = await uploads.explainUnreachable()
      })
  } finally {
    progress.stop()
  }
  const results = printer.close()
  const unwritten = await writeReports(reports, results, performance.now() - begun)
  sayWhatIsMissing(results, entries, options, terminal)
  if (dead !== undefined) terminal.note(describeUnreachable(dead, options, terminal))
  await tellDesktop(results, options, terminal)
  const isTold = await comment.tell(results, before, signal)
  for (const message of unwritten) terminal.note(message)
  const code = exitCodeOf(results) || (isTold && unwritten.length === 0 ? EXIT.done : EXIT.failed)
  return options.softFail && code !== EXIT.interrupted ? EXIT.done : code
}

function sayWhatIsMissing(
  results: readonly Result[],
  entries: readonly Entry[],
  options: UploadOptions,
  terminal: Terminal,
): void {
  const failed = results.filter(isFailure)
  for (const line of toFailureLines(failed)) terminal.note(oneLine(line))
  const pending = pendingOf(results)
  if (pending.length > 0) terminal.note(sayFinish(pending, options, terminal))
  if (failed.length === 0) return
  const isClipboard = results[0]?.name === CLIPBOARD.name && results.length === 1
  // As an argument, a name that a list may not contain would be allowed, or be a pattern.
  const isRepeated = (_: unknown, index: number) => !(entries[index]?.isListed && entries[index].fault)
  const again = isClipboard
    ? []
    : results
        .filter(isRepeated)
        .filter(isFailure)
        .map(({ name }) => name)
  const { config, server, key, picbed, configName, path, expires, keepFolders, format, name } = options
  const { stripComponents, tokenFrom, retryMaxTime, wait, job, githubOutput, githubSummary } = options
  const { copy, notify } = options
  const given = {
    config,
    destination: picbed && configName && `${picbed}/${configName}`,
    picbed: configName ? undefined : picbed,
    'config-name': picbed ? undefined : configName,
    path,
    expires,
    'keep-folders': keepFolders,
    'strip-components': stripComponents,
    format: format === 'url' ? undefined : format,
    server,
    key,
    'token-from': tokenFrom,
    name: again.length === 1 || again.includes('-') ? name : undefined,
    'retry-max-time': retryMaxTime === CLIENT_DEFAULTS.retryFor ? undefined : `${retryMaxTime / 1000}s`,
    wait,
    job,
    'github-output': githubOutput,
    'github-summary': githubSummary,
    copy,
    notify,
  }
  const line = commandFor('upload', again, given, terminal)
  const advice = isClipboard || again.length > 0 ? sayRepeat(line) : ''
  terminal.note(`${failed.length} of ${results.length} files failed.${advice}`)
}
