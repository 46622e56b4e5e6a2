import { fstatSync } from 'node:fs'
import { CLIPBOARD, type Entry, findEntries, NO_FILES } from '../../client/entries.ts'
import { readFileList } from '../../client/file-list.ts'
import { imagesOf } from '../../client/reports/images.ts'
import { openReports, writeReports } from '../../client/reports/reports.ts'
import { interruption, isFailure, type Result } from '../../client/result.ts'
import { messageOf } from '../../errors.ts'
import { readFolder } from '../../payload/folder.ts'
import { readChoice } from '../../uploader/destinations.ts'
import { type Call, type OptionsOf, UsageError } from '../define.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { startProgress } from '../progress.ts'
import { describeUnreachable, lineFor, pendingOf, sayFinish, sayRepeat } from '../repeat.ts'
import type { Reviewed, Reviewing } from '../reviewing.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import { withUploads } from '../with-uploads.ts'
import { notifyOf, tellDesktop } from './desktop.ts'
import type { flags } from './index.ts'
import { createResultPrinter, toFailureLines } from './result-printer.ts'

type UploadCall = Call<typeof flags>
type Options = OptionsOf<typeof flags>

/**
 * `upload-server upload F…`: prints one link per line on standard output, in order, as soon as all links before it are
 * known. After Ctrl-C, uploads in progress are aborted, and what was stored is still reported.
 */
export async function run(call: UploadCall, terminal: Terminal): Promise<number> {
  try {
    return await upload(call, terminal)
  } catch (error) {
    if (call.options.notify) await notifyOf('The upload failed', messageOf(error), terminal)
    throw error
  }
}

async function upload(call: UploadCall, terminal: Terminal): Promise<number> {
  const signal = terminal.untilInterrupted()
  const { words, options } = call
  assertUsage(words, options)
  const choice = await orUsage(() => {
    readFolder(options.path ?? '', '--path')
    return readChoice(options)
  })
  const entries = await findAll(words, options, terminal)
  if (entries.length === 0) {
    terminal.note(
      `There is nothing to upload.${options.allowEmpty ? '' : ' To accept that, add --allow-empty.'}`,
    )
    if (!options.allowEmpty) return options.softFail ? EXIT.done : EXIT.failed
  }
  return uploadEntries(entries, { ...call, options: { ...options, ...choice } }, terminal, signal)
}

function assertUsage(words: readonly string[], { compare, filesFrom }: Options): void {
  // An empty name would mean the working directory with all its files.
  if ([...words, compare, filesFrom].includes(''))
    throw new UsageError('A file name is empty. Check whether a variable is unset.')
  if (words.indexOf('-') !== words.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  if (filesFrom === '-' && words.includes('-'))
    throw new UsageError(
      'Standard input can be either a file (-) or a list of names (--files-from -), not both.',
    )
}

/** Anything that fails before the first upload is wrong usage. */
async function orUsage<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** Finds the files to upload, in order. */
async function findAll(
  words: readonly string[],
  { path = '', keepFolders, stripComponents, name, filesFrom, allowEmpty }: Options,
  terminal: Terminal,
): Promise<readonly Entry[]> {
  const how = {
    path,
    ...(keepFolders && { keepFolders }),
    ...(stripComponents !== undefined && { stripComponents }),
  }
  if (words.length === 0 && filesFrom === undefined) {
    if (terminal.isInteractive && isPiped())
      throw new UsageError(
        'Without a file name, upload sends the image in the clipboard, but standard input is a pipe or a file. To upload that, add "-": upload-server upload - --name image.png',
      )
    return [{ ...CLIPBOARD, ...(path !== '' && { folder: path }) }]
  }
  const listed = filesFrom === undefined ? [] : await orUsage(() => readFileList(filesFrom, terminal))
  const named = await findEntries(words, how, terminal)
  const entries = [...named, ...(await findEntries(listed, { ...how, isLiteral: true }, terminal))]
  const isNothing = ({ fault = '' }: Entry) => Object.values(NO_FILES).includes(fault)
  const found = allowEmpty ? entries.filter(entry => !isNothing(entry)) : entries
  if (name === undefined) return found
  const renamed = found.length === 1 ? found : found.filter(({ kind }) => kind === 'stdin')
  if (renamed.length === 0)
    throw new UsageError(`--name can be used with only one file, but there are ${found.length}.`)
  return found.map(entry => (renamed.includes(entry) ? { ...entry, fileName: name } : entry))
}

/** Whether something is redirected to standard input. Editors that run the command pass a pipe, too, but no terminal. */
function isPiped(): boolean {
  try {
    const stdin = fstatSync(0)
    return stdin.isFIFO() || stdin.isFile()
  } catch {
    return false // It is closed.
  }
}

async function uploadEntries(
  entries: readonly Entry[],
  call: UploadCall,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { options, typed } = call
  const begun = performance.now()
  const reports = await orUsage(() => openReports(options, terminal))
  const reviewing = await orUsage(() => loadReviewing(options, terminal, signal))
  const [only] = entries
  const progress = startProgress(
    entries.length === 1 ? `Uploading ${only?.name}` : `Uploading ${entries.length} files`,
    terminal,
  )
  const note = (line: string) => progress.around(() => terminal.note(line))
  const printer = createResultPrinter(entries, options, terminal, progress)
  let dead: string | undefined
  let reviewed: Reviewed | undefined
  try {
    if (entries.length > 0 || reviewing)
      await withUploads(options, terminal, {}, async uploads => {
        await reviewing?.compare(imagesOf(entries), uploads, { note, draws: true })
        const stored = entries.map(({ name }) => interruption(name))
        for await (const { index, ...result } of uploads.upload(entries, signal, printer)) {
          stored[index] = result
          printer.settle(index, result)
        }
        dead = await uploads.explainUnreachable()
        progress.stop()
        reviewed = await reviewing?.finish(stored, uploads)
      })
  } finally {
    progress.stop()
  }
  const results = printer.close()
  const unwritten = await writeReports(reports, results, performance.now() - begun, reviewed?.summary)
  sayWhatIsMissing(results, entries, call, terminal)
  if (dead !== undefined) terminal.note(describeUnreachable(dead, typed, terminal))
  await tellDesktop(results, options, terminal)
  for (const message of unwritten) terminal.note(message)
  const code = exitCodeOf(results) || (reviewed?.hasFailed || unwritten.length > 0 ? EXIT.failed : EXIT.done)
  if (code !== EXIT.done && !(options.softFail && code !== EXIT.interrupted)) return code
  return reviewed?.isRejected ? EXIT.failed : EXIT.done
}

/** Undefined if the images are neither compared nor shown in a comment. It is loaded only then. */
async function loadReviewing(
  options: Options,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Reviewing | undefined> {
  const { comment, compare, baseline, report } = options
  if (!comment && compare === undefined && baseline === undefined && report === undefined) return undefined
  const { openReviewing } = await import('../reviewing.ts')
  return openReviewing(options, terminal, signal)
}

function sayWhatIsMissing(
  results: readonly Result[],
  entries: readonly Entry[],
  { command, typed }: UploadCall,
  terminal: Terminal,
): void {
  const failed = entries.filter((_, index) => results[index] && isFailure(results[index]))
  for (const line of toFailureLines(results.filter(isFailure))) terminal.note(oneLine(line))
  const pending = pendingOf(results)
  if (pending.length > 0) terminal.note(sayFinish(pending, typed, terminal))
  if (failed.length === 0) return
  // As an argument, a name that a list may not contain would be allowed, or be a pattern.
  const again = failed.filter(({ isListed, fault }) => !(isListed && fault))
  const words = again.filter(({ kind }) => kind !== 'clipboard').map(({ name }) => name)
  const isNamed = again.some(({ fileName }) => fileName !== undefined)
  const line = lineFor(
    command,
    words,
    typed.filter(([name]) => name !== 'name' || isNamed),
    terminal,
  )
  terminal.note(
    `${failed.length} of ${results.length} files failed.${again.length > 0 ? sayRepeat(line) : ''}`,
  )
}
