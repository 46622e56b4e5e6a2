import { relative, resolve } from 'node:path'
import { findNotes } from '../../client/notes/find-notes.ts'
import type { NamedNote, NoteReport, StoredImage } from '../../client/notes/upload-images.ts'
import { isWebAddress } from '../../client/reports/format.ts'
import { INTERRUPTION, type Result } from '../../client/result.ts'
import { uploadAll } from '../../client/uploads.ts'
import { UploadError } from '../../errors.ts'
import { isAt } from '../../http/addresses.ts'
import { isLocalUrl } from '../../page/editors.ts'
import { readChoice } from '../../uploader/destinations.ts'
import type { Call, OptionsOf } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import { bar, startProgress } from '../progress.ts'
import { pendingOf, remarksOn } from '../repeat.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { UploadRights } from '../upload-here.ts'
import { withUploads } from '../with-uploads.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/**
 * `upload-server markdown NOTE.md… FOLDER…`: prints changes on standard output and failures on standard error. Returns 0
 * only if no link failed.
 */
export async function run(
  { words, options, typed }: Call<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  const signal = terminal.untilInterrupted()
  if (options.undo) return undo(words, options, terminal, signal)
  const { from = [] } = options
  const choice = readChoice(options)
  const { uploadImages } = await import('../../client/notes/upload-images.ts')
  const progress = startProgress('Looking for notes', terminal)
  const reports: NoteReport[] = []
  let remarks: readonly string[] = []
  let isUnfinished = false
  let notes: NamedNote[] = []
  let seen = 0
  /** Where links lead that only work on this machine. */
  let local: string | undefined
  try {
    const fail = (path: string, reason: string) => reports.push({ path, links: 0, failures: [{ reason }] })
    notes = await findNotes(words, terminal.cwd, fail, signal)
    // A dry run also fails where the destination or the configuration would.
    await withUploads({ ...options, ...choice }, terminal, rightsOfNotes(from), async uploads => {
      const results: Result[] = []
      await uploadImages(notes, {
        from,
        roots: (options.root ?? []).map(root => resolve(terminal.cwd, root)),
        isDryRun: options.dryRun === true,
        withBackup: options.backup,
        signal,
        async store(images) {
          const found = await uploadAll(uploads, images, signal)
          results.push(...found)
          for (const { url } of found) if (url !== undefined && isLocalUrl(url)) local = new URL(url).origin
          return found.map(result => toStored(result, from))
        },
        onNote: report => {
          reports.push(report)
          progress.update(bar(++seen, notes.length, 'notes'))
        },
      })
      if (options.dryRun) return
      isUnfinished = pendingOf(results).length > 0
      remarks = remarksOn(results, await uploads.explainUnreachable(), typed, terminal)
    })
  } finally {
    progress.stop()
  }
  say(reports, options, terminal)
  for (const line of remarks) terminal.note(line)
  if (local !== undefined)
    terminal.note(
      oneLine(
        `Links that begin with ${local} only work on this machine. For links that work elsewhere, set server.publicUrl, or choose another destination.`,
      ),
    )
  if (signal.aborted) {
    terminal.note(`Interrupted after ${seen} of ${notes.length} notes. Run the command again to continue.`)
    return EXIT.interrupted
  }
  const hasFailed = reports.some(({ failures }) => failures.length > 0)
  return hasFailed || isUnfinished ? 1 : 0
}

/** @throws Error if the image was stored where it was taken from: each run would move it again */
function toStored({ url, error = INTERRUPTION }: Result, from: readonly string[]): StoredImage {
  if (url === undefined) return { error }
  const to = new URL(url)
  if (!isAt(from, to)) return { url }
  throw new Error(
    `The destination stores its files on ${to.host}, too. Choose another destination with --destination.`,
  )
}

/** `upload-server markdown --undo`: restores notes from their newest backups. */
async function undo(
  names: readonly string[],
  options: Options,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { undoNote } = await import('../../client/notes/undo.ts')
  const reports: NoteReport[] = []
  const fail = (path: string, reason: string) => reports.push({ path, links: 0, failures: [{ reason }] })
  const notes = await findNotes(names, terminal.cwd, fail, signal)
  let restored = 0
  for (const { path } of notes) {
    const report = await undoNote(path, options.dryRun === true)
    if (report?.from) {
      restored++
      const shown = (path: string) => relative(terminal.cwd, path)
      terminal.print(
        oneLine(`${shown(path)}: ${options.dryRun ? 'would be ' : ''}restored from ${shown(report.from)}`),
      )
    } else if (report) reports.push(report)
  }
  sayFailures(reports, terminal)
  terminal.note(`${restored} of ${count(notes.length, 'note')} ${options.dryRun ? 'would be ' : ''}restored.`)
  return reports.length > 0 ? 1 : 0
}

/** Notes may be written by others, so their URLs only reach the hosts that the user named, and public ones by redirects. */
const rightsOfNotes = (from: readonly string[]): UploadRights => ({
  caller: { addresses: 'private', privateHosts: from },
  // A file may have changed since it was found, and a URL may respond with an error page.
  accept({ contentType }) {
    if (!contentType.startsWith('image/'))
      throw new UploadError('source_failed', `it is not an image but ${contentType}`)
  },
})

function say(reports: readonly NoteReport[], { dryRun }: Options, terminal: Terminal): void {
  const shown = (path: string) => relative(terminal.cwd, path) || '.'
  for (const { path, links, diff, images = [] } of reports) {
    for (const { line, target, image } of images)
      terminal.print(
        oneLine(
          `${shown(path)}:${line}: ${target.slice(0, 200)} is ${isWebAddress(image) ? image : shown(image)}`,
        ),
      )
    if (diff !== undefined)
      terminal.print(
        `${oneLine(`--- ${shown(path)}`)}\n${oneLine(`+++ ${shown(path)}`)}\n${diff.replace(/\r$/gm, '')}`,
      )
    else if (links > 0) terminal.print(oneLine(`${shown(path)}: ${count(links, 'link')}`))
  }
  const failed = sayFailures(reports, terminal)
  const changed = reports.filter(({ links }) => links > 0)
  const links = changed.reduce((sum, one) => sum + one.links, 0)
  const done = dryRun ? 'would change' : 'changed'
  const rest = failed > 0 ? `; ${count(failed, 'failure')}` : ''
  terminal.note(
    `${count(links, 'link')} in ${changed.length} of ${count(reports.length, 'note')} ${done}${rest}.`,
  )
}

/** @returns the number of failures */
function sayFailures(reports: readonly NoteReport[], terminal: Terminal): number {
  let failed = 0
  for (const { path, failures } of reports) {
    failed += failures.length
    for (const { line, target, reason } of failures) {
      const where = [relative(terminal.cwd, path) || '.', ...(line === undefined ? [] : [line])].join(':')
      const what = target === undefined ? '' : `${target.slice(0, 200)}: `
      terminal.note(oneLine(terminal.mask(`${where}: ${what}${reason}`)))
    }
  }
  return failed
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
