import { fstatSync } from 'node:fs'
import { CLIPBOARD, type Entry, findEntries, NO_FILES } from '../../client/entries.ts'
import { readFileList } from '../../client/file-list.ts'
import { imagesOf } from '../../client/reports/images.ts'
import { openReports, writeReports } from '../../client/reports/reports.ts'
import { isFailure, type Result } from '../../client/result.ts'
import type { Uploads } from '../../client/uploads.ts'
import { messageOf } from '../../errors.ts'
import { readFolder } from '../../payload/folder.ts'
import { readChoice } from '../../uploader/destinations.ts'
import { type Call, type OptionsOf, UsageError } from '../define.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { lineFor, remarksOn, sayRepeat } from '../repeat.ts'
import type { Reviewed } from '../reviewing.ts'
import { oneLine, saying, type Terminal } from '../terminal.ts'
import { withUploads } from '../with-uploads.ts'
import { notifyOf, tellDesktop } from './desktop.ts'
import type { flags } from './index.ts'
import { createPrinter } from './printer.ts'

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
  const { options, typed } = call
  const { allowEmpty, softFail } = options
  const begun = performance.now()
  // Anything that fails before the first upload is wrong usage.
  const { entries, choice, reports, reviewImages } = await prepare(call, terminal, signal).catch(error => {
    throw new UsageError(messageOf(error))
  })
  if (entries.length === 0) {
    terminal.note(`There is nothing to upload.${allowEmpty ? '' : ' To accept that, add --allow-empty.'}`)
    if (!allowEmpty) return softFail ? EXIT.done : EXIT.failed
  }
  const printer = createPrinter(entries, options, terminal)
  let dead: string | undefined
  let reviewed: Reviewed | undefined
  async function store(uploads: Uploads): Promise<readonly Result[]> {
    for await (const { index, ...result } of uploads.upload(entries, signal, printer))
      printer.settle(index, result)
    dead = await uploads.explainUnreachable()
    return printer.results()
  }
  const work = () =>
    withUploads({ ...options, ...choice }, terminal, {}, async uploads => {
      const what = { images: imagesOf(entries), uploads, store: () => store(uploads) }
      if (reviewImages) reviewed = await reviewImages(what)
      else await store(uploads)
    })
  const what = entries.length === 1 ? entries[0]?.name : `${entries.length} files`
  if (entries.length > 0 || reviewImages)
    await (options.quiet ? work() : saying(`Uploading ${what}`, terminal, work))
  const results = printer.finish()
  const unwritten = await writeReports(reports, results, performance.now() - begun, reviewed?.summary)
  noteFailures(results, entries, call, terminal)
  for (const line of remarksOn(results, dead, typed, terminal)) terminal.note(line)
  await tellDesktop(results, options, terminal)
  for (const message of unwritten) terminal.note(message)
  const code = exitCodeOf(results) || (reviewed?.hasFailed || unwritten.length > 0 ? EXIT.failed : EXIT.done)
  if (code !== EXIT.done && !(softFail && code !== EXIT.interrupted)) return code
  return reviewed?.isRejected ? EXIT.failed : EXIT.done
}

/** Checks the command line, finds the files, and opens the reports. @throws Error */
async function prepare({ words, options }: UploadCall, terminal: Terminal, signal: AbortSignal) {
  const { comment, compare, baseline, report, status, filesFrom } = options
  // An empty name would mean the working directory with all its files.
  if ([...words, compare, filesFrom].includes(''))
    throw new Error('A file name is empty. Check whether a variable is unset.')
  if (words.indexOf('-') !== words.lastIndexOf('-'))
    throw new Error('Standard input (-) can be given only once.')
  if (filesFrom === '-' && words.includes('-'))
    throw new Error('Standard input can be either a file (-) or a list of names (--files-from -), not both.')
  if (status && !comment) throw new Error('--status requires --comment.')
  readFolder(options.path ?? '', '--path')
  const choice = readChoice(options)
  const entries = await findAll(words, options, terminal)
  if (entries.length === 0 && !options.allowEmpty) return { entries, choice, reports: [] }
  const reports = await openReports(options, terminal)
  if (!comment && [compare, baseline, report].every(one => one === undefined))
    return { entries, choice, reports }
  const { openReviewing } = await import('../reviewing.ts')
  return { entries, choice, reports, reviewImages: await openReviewing(options, terminal, signal) }
}

/** Finds the files to upload, in order. */
async function findAll(
  words: readonly string[],
  { path = '', keepFolders = false, stripComponents = 0, name, filesFrom, allowEmpty }: Options,
  terminal: Terminal,
): Promise<readonly Entry[]> {
  if (words.length === 0 && filesFrom === undefined) {
    if (terminal.isInteractive && isPiped())
      throw new Error(
        'Without a file name, upload sends the image in the clipboard, but standard input is a pipe or a file. To upload that, add "-": upload-server upload - --name image.png',
      )
    return [{ ...CLIPBOARD, ...(path !== '' && { folder: path }) }]
  }
  const how = { path, keepFolders, stripComponents }
  const listed = filesFrom === undefined ? [] : await readFileList(filesFrom, terminal)
  const named = await findEntries(words, how, terminal)
  const entries = [...named, ...(await findEntries(listed, { ...how, isLiteral: true }, terminal))]
  const isNothing = ({ fault = '' }: Entry) => Object.values(NO_FILES).includes(fault)
  const found = allowEmpty ? entries.filter(entry => !isNothing(entry)) : entries
  if (name === undefined) return found
  const renamed = found.length === 1 ? found : found.filter(({ kind }) => kind === 'stdin')
  if (renamed.length === 0)
    throw new Error(`--name can be used with only one file, but there are ${found.length}.`)
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

/** Above this number, files that failed for the same reason are counted instead of listed. */
const MOST_NAMED = 20

/** A line for each file that was not stored, or one for many with the same reason, and how to try again. */
function noteFailures(
  results: readonly Result[],
  entries: readonly Entry[],
  { command, typed }: UploadCall,
  terminal: Terminal,
): void {
  const failed = results.filter(isFailure)
  if (failed.length === 0) return
  for (const reason of new Set(failed.map(({ error }) => error))) {
    const names = failed.filter(({ error }) => error === reason).map(({ name }) => name)
    const shown = names.length > MOST_NAMED ? [`${names[0]} and ${names.length - 1} others`] : names
    for (const name of shown) terminal.note(oneLine(`${name}: ${reason}`))
  }
  // As an argument, a name that a list may not contain would be allowed, or be a pattern.
  const again = entries.filter(
    ({ isListed, fault }, index) => isFailure(results[index] as Result) && !(isListed && fault),
  )
  const words = again.filter(({ kind }) => kind !== 'clipboard').map(({ name }) => name)
  const isNamed = again.some(({ fileName }) => fileName !== undefined)
  const used = typed.filter(([name]) => name !== 'name' || isNamed)
  const repeat = again.length > 0 ? sayRepeat(lineFor(command, words, used, terminal)) : ''
  terminal.note(`${failed.length} of ${results.length} files failed.${repeat}`)
}
