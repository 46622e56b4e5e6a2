import { text as readText } from 'node:stream/consumers'
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { readFolder } from '../payload/folder.ts'
import { configOption, endWith, keyOption, parseCount, parseDuration, parseServer } from './command.ts'
import { addCommentOptions, type CommentOptions, prepareComment } from './comment.ts'
import { CLIPBOARD, type Entry, type EntryOptions, findEntries, NO_FILES } from './entries.ts'
import { FORMATS, type OutputFormat } from './format.ts'
import { startProgress } from './progress.ts'
import { commandFor, finishFor, sayRepeat } from './repeat.ts'
import { openReports, type ReportOptions, writeReports } from './reports.ts'
import { EXIT, exitCodeOf, interruption, isFailure, type Result, toFailureLines } from './result.ts'
import { createResultPrinter } from './result-printer.ts'
import { type Listener, type SendOptions, sendToServer } from './send.ts'
import { type CommonOptions, oneLine, quote, type Terminal } from './terminal.ts'
import type { Ending } from './upload-here.ts'

interface UploadOptions
  extends CommonOptions,
    ReportOptions,
    CommentOptions,
    Omit<EntryOptions, 'isLiteral'>,
    Omit<SendOptions, 'server'> {
  format: OutputFormat
  /** What the one file is called there. */
  name?: string
  stdinList?: boolean
  allowEmpty?: boolean
  softFail?: boolean
  quiet?: boolean
  /** Address of a running server to send through. */
  server?: string
}

/** Options that mean something to a running server only. */
const FOR_SERVER = ['concurrency', 'timeout', 'wait', 'job']

export function register(program: Command, terminal: Terminal): void {
  const command = program
    .command('upload')
    .description('upload files, here or through a running server, and print one link a line')
    .addArgument(
      new Argument(
        '[file...]',
        'files, folders, patterns, addresses, or - for standard input; none: the clipboard',
      ),
    )
    .addOption(configOption())
    .option('--picbed <provider>', 'provider of the destination')
    .option('--config-name <name>', 'saved configuration of the provider')
    .option('--path <folder>', 'folder for the files, where the key template says {path}')
    .option('--expires <when>', 'when they may go: 90m, 12h, 14d, never, or a time of RFC 3339')
    .option('--keep-folders', 'keep the folders of the files below it, as they are named here')
    .option('--strip <n>', 'leave out so many of these folders, from the first on', parseCount)
    .option('--name <name>', 'what the one file, or standard input, is called there')
    .option('--stdin-list', 'read names from standard input, one a line or ended by NUL characters')
    .option('--allow-empty', 'nothing to upload is no failure')
    .addOption(new Option('--format <format>', 'what to print').choices(FORMATS).default('url'))
    .option('-q, --quiet', 'no line for each file; failures are named all the same')
    .option(
      '--github-output',
      'append url, urls, markdown, json, stored, failed to the file that GITHUB_OUTPUT names',
    )
    .option('--github-summary', 'append Markdown to the file that GITHUB_STEP_SUMMARY names')
    .option(
      '--gitlab-dotenv <file>',
      'write UPLOAD_URL, UPLOAD_URL_1…, UPLOAD_STORED, UPLOAD_FAILED for GitLab',
    )
    .option('--junit <file>', 'write a JUnit report, a test case for each file')
    .option('--comment', 'write the pictures into a comment at the pull request, or bring it up to date')
    .option('--compare <folder>', 'show there how pictures of the same names were: before and after')
    .option('--soft-fail', 'end with 0 although files were not stored')
    .option('--server <url>', 'send through a running server', parseServer)
    .addOption(keyOption())
    .addOption(
      new Option('--concurrency <n>', 'requests to it at once').argParser(parseConcurrency).default(4),
    )
    .addOption(
      new Option('--timeout <time>', 'how long what may pass is tried again, such as 90s or 10m; 0: never')
        .argParser(parseDuration)
        .default(5 * 60_000, '5m'),
    )
    .option('--wait', 'wait for a server that is not there yet, as long as --timeout says')
    .option('--job <id>', 'the same job sends nothing twice; default: the run of the CI host')
  addCommentOptions(command)
    .exitOverride(error => {
      if (error.exitCode !== EXIT.done) error.exitCode = EXIT.usage
      throw error
    })
    .addHelpText(
      'after',
      `
Examples:
  upload-server upload *.png                 one link a line, in their order
  upload-server upload                       the picture in the clipboard
  grim - | upload-server upload - --name screen.png
  upload-server upload a.png --format markdown --picbed s3 --config-name blog
  upload-server upload --server https://img.example.com screenshots/ 'out/**/*.png'
  upload-server upload --keep-folders --strip 1 report/
  upload-server upload --comment --compare main/ shots/
  git diff -z --name-only | upload-server upload --stdin-list --allow-empty

It ends with 0 when all were stored, 1 when none was, 2 for wrong usage, 3 when some were, 4 when the server can't be
reached, 5 when it refuses the key, and 130 after Ctrl-C.`,
    )
    .action((files: string[], options: UploadOptions, command: Command) => {
      const given = FOR_SERVER.filter(name => command.getOptionValueSource(name) === 'cli')
      return endWith(terminal, upload(files, options, given, terminal, terminal.untilInterrupted()))
    })
}

function parseConcurrency(text: string): number {
  const count = parseCount(text)
  if (count < 1 || count > 64) throw new InvalidArgumentError('It is a whole number from 1 to 64.')
  return count
}

/** What was typed can't be meant: nothing was uploaded. */
class UsageError extends Error {}

/**
 * `upload-server upload F…`: one link a line on standard output, in order, as soon as its turn has come.
 *
 * @param forServer options given that need --server
 * @param signal Ctrl-C: what is under way is given up, and what was stored is still said
 * @returns the exit code
 */
async function upload(
  names: readonly string[],
  options: UploadOptions,
  forServer: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  try {
    checkUsage(names, options, forServer)
    const entries = await findAll(names, options, terminal)
    if (entries.length === 0) {
      terminal.note(
        `There is nothing to upload.${options.allowEmpty ? '' : ' --allow-empty lets that pass.'}`,
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

function checkUsage(names: readonly string[], options: UploadOptions, forServer: readonly string[]): void {
  // It would stand for the working folder, with all that lies there.
  if ([...names, options.compare].includes(''))
    throw new UsageError('A name is empty. Is a variable not set that should hold it?')
  if (names.indexOf('-') !== names.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given once only.')
  if (options.stdinList && names.includes('-'))
    throw new UsageError('Standard input is either a file (-) or a list of names (--stdin-list).')
  if (options.strip !== undefined && !options.keepFolders)
    throw new UsageError('--strip needs --keep-folders.')
  if (options.server === undefined && forServer.length > 0)
    throw new UsageError(`--${forServer[0]} needs --server.`)
  if (options.compare !== undefined && !options.comment) throw new UsageError('--compare needs --comment.')
  try {
    readFolder(options.path ?? '', '--path')
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** What is to be uploaded, in order. */
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
  if (named.length === 0) throw new UsageError(`--name names one file, and there are ${found.length}.`)
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
  const send = async (some: readonly Entry[], listener: Listener): Promise<Ending | undefined> => {
    const { server } = options
    if (some.length === 0) return undefined
    if (server !== undefined) {
      await sendToServer(some, { ...options, server }, terminal, signal, listener)
      return undefined
    }
    // It brings the store and the configuration along, which is half of the start.
    const { uploadHere } = await import('./upload-here.ts')
    return await uploadHere(some, options, terminal, signal, listener)
  }
  const [only] = entries
  const progress = startProgress(
    entries.length === 1 ? `Uploading ${only?.name}` : `Uploading ${entries.length} files`,
    terminal,
  )
  const printer = createResultPrinter(entries, options, terminal, progress)
  const before: Result[] = comment.earlier.map(({ name }) => interruption(name))
  let here: Ending | undefined
  try {
    here = await send(entries, printer)
    await send(comment.earlier, { settle: (index, result) => void before.splice(index, 1, result) })
  } finally {
    progress.stop()
  }
  const results = printer.close(here?.unfinished)
  const unwritten = await writeReports(reports, results, performance.now() - begun)
  sayWhatIsMissing(results, options, terminal)
  if (here?.areDead) {
    const flag = options.config === undefined ? '' : ` --config ${quote(options.config, terminal.platform)}`
    terminal.note(`These links work while the server runs. Start it with: upload-server${flag}`)
  }
  const isTold = await comment.tell(results, before, signal)
  for (const message of unwritten) terminal.note(message)
  const code = exitCodeOf(results) || (isTold && unwritten.length === 0 ? EXIT.done : EXIT.failed)
  return options.softFail && code !== EXIT.interrupted ? EXIT.done : code
}

function sayWhatIsMissing(results: readonly Result[], options: UploadOptions, terminal: Terminal): void {
  const failed = results.filter(isFailure)
  for (const line of toFailureLines(failed)) terminal.note(oneLine(line))
  const pending = [...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId))]
  if (pending.length > 0)
    terminal.note(`Finish without uploading again: ${finishFor(pending, options, terminal)}`)
  if (failed.length === 0) return
  const isClipboard = results[0]?.name === CLIPBOARD.name && results.length === 1
  const again = isClipboard ? [] : failed.map(({ name }) => name)
  const { config, server, key, picbed, configName, path, expires, keepFolders, strip, format, name } = options
  const given = {
    ...{ config, picbed, 'config-name': configName, path, expires, 'keep-folders': keepFolders, strip },
    format: format === 'url' ? undefined : format,
    server,
    key,
    name: again.length === 1 || again.includes('-') ? name : undefined,
    'github-summary': options.githubSummary,
  }
  const line = commandFor('upload', again, given, terminal)
  terminal.note(`${failed.length} of ${results.length} failed.${sayRepeat(line)}`)
}
