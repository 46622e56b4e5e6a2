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
import type { Call } from '../define.ts'
import { EXIT } from '../exit-code.ts'
import { remarksOn } from '../repeat.ts'
import { oneLine, saying, type Terminal } from '../terminal.ts'
import type { UploadRights } from '../upload-here.ts'
import { withUploads } from '../with-uploads.ts'
import type { flags } from './index.ts'

type NotesCall = Call<typeof flags>

/**
 * `upload-server markdown NOTE.md… FOLDER…`: prints changes on standard output and failures on standard error. Returns 0
 * only if no link failed.
 */
export async function run({ words, options, typed }: NotesCall, terminal: Terminal): Promise<number> {
  const { from = [], root = [], dryRun = false } = options
  const signal = terminal.untilInterrupted()
  const reports: NoteReport[] = []
  const fail = (path: string, reason: string) => reports.push({ path, links: 0, failures: [{ reason }] })
  const find = () => findNotes(words, terminal.cwd, fail, signal)
  if (options.undo) return undo(await find(), reports, dryRun, terminal)
  const choice = readChoice(options)
  const { uploadImages } = await import('../../client/notes/upload-images.ts')
  const results: Result[] = []
  let dead: string | undefined
  let notes: NamedNote[] = []
  let seen = 0
  await saying(dryRun ? 'Reading the notes' : 'Uploading the images of the notes', terminal, async () => {
    notes = await find()
    // A dry run also fails where the destination or the configuration would.
    await withUploads({ ...options, ...choice }, terminal, rightsOfNotes(from), async uploads => {
      await uploadImages(notes, {
        from,
        roots: root.map(one => resolve(terminal.cwd, one)),
        isDryRun: dryRun,
        withBackup: options.backup,
        signal,
        async store(images) {
          const found = await uploadAll(uploads, images, signal)
          results.push(...found)
          return found.map(result => toStored(result, from))
        },
        onNote(report) {
          reports.push(report)
          seen++
        },
      })
      if (!dryRun) dead = await uploads.explainUnreachable()
    })
  })
  printChanges(reports, dryRun, terminal)
  for (const line of dryRun ? [] : remarksOn(results, dead, typed, terminal)) terminal.note(line)
  const local = results.find(({ url }) => url !== undefined && isLocalUrl(url))?.url
  if (local !== undefined)
    terminal.note(
      `Links that begin with ${new URL(local).origin} only work on this machine. For links that work elsewhere, set server.publicUrl, or choose another destination.`,
    )
  if (signal.aborted) {
    terminal.note(`Interrupted after ${seen} of ${notes.length} notes. Run the command again to continue.`)
    return EXIT.interrupted
  }
  const isUnfinished = results.some(({ finalizationId }) => finalizationId !== undefined)
  return isUnfinished || reports.some(({ failures }) => failures.length > 0) ? EXIT.failed : EXIT.done
}

/** @throws Error if the image was stored where it was taken from: each run would move it again */
function toStored({ url, error = INTERRUPTION }: Result, from: readonly string[]): StoredImage {
  if (url === undefined) return { error }
  const { host } = new URL(url)
  if (!isAt(from, new URL(url))) return { url }
  throw new Error(
    `The destination stores its files on ${host}, too. Choose another destination with --destination.`,
  )
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

/** `upload-server markdown --undo`: restores notes from their newest backups. */
async function undo(
  notes: readonly NamedNote[],
  reports: NoteReport[],
  isDryRun: boolean,
  terminal: Terminal,
): Promise<number> {
  const { undoNote } = await import('../../client/notes/undo.ts')
  const verb = isDryRun ? 'would be restored' : 'restored'
  let restored = 0
  for (const { path } of notes) {
    const report = await undoNote(path, isDryRun)
    if (report?.from) {
      restored++
      terminal.print(oneLine(`${shown(path, terminal)}: ${verb} from ${shown(report.from, terminal)}`))
    } else if (report) reports.push(report)
  }
  noteFailures(reports, terminal)
  terminal.note(`${restored} of ${count(notes.length, 'note')} ${verb}.`)
  return reports.length > 0 ? EXIT.failed : EXIT.done
}

function printChanges(reports: readonly NoteReport[], isDryRun: boolean, terminal: Terminal): void {
  for (const { path, links, diff, images = [] } of reports) {
    const name = oneLine(shown(path, terminal))
    for (const { line, target, image } of images) {
      const file = isWebAddress(image) ? image : shown(image, terminal)
      terminal.print(oneLine(`${name}:${line}: ${target.slice(0, 200)} is ${file}`))
    }
    if (diff !== undefined) terminal.print(`--- ${name}\n+++ ${name}\n${diff.replace(/\r$/gm, '')}`)
    else if (links > 0) terminal.print(`${name}: ${count(links, 'link')}`)
  }
  const failed = noteFailures(reports, terminal)
  const changed = reports.filter(({ links }) => links > 0)
  const links = changed.reduce((sum, one) => sum + one.links, 0)
  const verb = isDryRun ? 'would change' : 'changed'
  const rest = failed > 0 ? `; ${count(failed, 'failure')}` : ''
  terminal.note(
    `${count(links, 'link')} in ${changed.length} of ${count(reports.length, 'note')} ${verb}${rest}.`,
  )
}

/** @returns the number of failures */
function noteFailures(reports: readonly NoteReport[], terminal: Terminal): number {
  const all = reports.flatMap(({ path, failures }) => failures.map(one => ({ ...one, path })))
  for (const { path, line, target, reason } of all) {
    const where = [shown(path, terminal), line].filter(part => part !== undefined).join(':')
    const what = target === undefined ? '' : `${target.slice(0, 200)}: `
    terminal.note(oneLine(`${where}: ${what}${reason}`))
  }
  return all.length
}

const shown = (path: string, { cwd }: Terminal) => relative(cwd, path) || '.'

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
