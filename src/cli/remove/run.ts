import type { HistoryEntry } from '../../store/contract.ts'
import { countFiles, findFiles, type HistoryFilter } from '../../store/history.ts'
import { showDuration, showMoment } from '../../times.ts'
import { idOf } from '../../uploader/destinations.ts'
import type { Uploader } from '../../uploader/index.ts'
import {
  findByWord,
  findRemoved,
  previewRemoval,
  type Removal,
  type RemovalTarget,
  removeObjects,
  withCopies,
} from '../../uploader/remove.ts'
import type { Call } from '../define.ts'
import { openForCommand } from '../open.ts'
import { confirm, oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** Objects that are listed before the question. */
const LISTED = 20
/** Entries that are read and deleted at a time, before their lines are printed. */
const AT_ONCE = 100

/** `upload-server remove`: returns 0 if everything was deleted. */
export async function run({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { destination, olderThan, path, dryRun, yes } = options
  const isSelection = olderThan !== undefined
  if (isSelection === words.length > 0 || (isSelection && destination === undefined))
    throw new Error('Specify links, object keys or ids, or --destination with --older-than.')
  const { uploader } = await openForCommand(options, terminal, { use: dryRun ? 'read' : 'change' })
  try {
    const among = uploader.destinations
      .map(idOf)
      .filter(id => destination === undefined || id === destination || id.startsWith(`${destination}/`))
    if (among.length === 0) throw new Error(`"${destination}" is not a destination of this configuration.`)
    const folder = path?.replace(/^\/+|(?<!\/)\/+$/g, '') || undefined
    const filter = { among, before: Date.now() - (olderThan ?? 0), isRemoved: false, folder }
    let [failures, lines] = [0, 0]
    const say = (print: (line: string) => void, line: string, isFailure: boolean) => {
      lines++
      if (isFailure) failures++
      print(oneLine(line))
    }
    const remark = (line: string, isFailure: boolean) => say(terminal.note, line, isFailure)
    const batches = isSelection ? olderFiles(filter, uploader) : [await named(words, among, uploader, remark)]
    let isConfirmed = dryRun || yes
    for await (const objects of batches) {
      if (objects.length > 0 && !isConfirmed) {
        const whole = isSelection
          ? await uploader.database.read(db => countFiles(db, filter))
          : objects.length
        for (const object of objects.slice(0, LISTED))
          terminal.note(toLine(object, await previewRemoval(object, uploader), 'remove', terminal))
        const more = whole > LISTED ? ` (the first ${LISTED} are listed)` : ''
        const what = isSelection ? ` older than ${showDuration(olderThan)} and their copies` : ''
        const question = `Permanently delete ${whole === 1 ? 'this file' : `these ${whole} files`}${what}?${more}`
        const advice = 'Add --yes to delete, or --dry-run to list what would be deleted.'
        isConfirmed = await confirm(question, advice, terminal)
        if (!isConfirmed) return 1
      }
      const removals = dryRun
        ? await Promise.all(objects.map(object => previewRemoval(object, uploader)))
        : await removeObjects(objects, uploader)
      for (const [index, removal] of removals.entries()) {
        // There is one result for each object.
        const line = toLine(objects[index] as RemovalTarget, removal, dryRun ? 'remove' : 'removed', terminal)
        say(terminal.print, line, removal.kind === 'failed' || removal.kind === 'manual')
      }
    }
    if (lines === 0) terminal.note('No files found.')
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}

/** @param say called with a line for each argument that matches no file, and whether that is a failure */
async function named(
  words: readonly string[],
  among: readonly string[],
  uploader: Uploader,
  say: (line: string, isFailure: boolean) => void,
): Promise<RemovalTarget[]> {
  const found: RemovalTarget[] = []
  for (const word of words) {
    const objects = await findByWord(word, among, uploader)
    found.push(...objects)
    if (objects.length > 0) continue
    const removedAt = await findRemoved(word, among, uploader)
    if (removedAt === undefined) say(`${word}: not found in the upload history`, true)
    else say(`${word}: was already deleted at ${showMoment(removedAt)}`, false)
  }
  return found
}

/** The old files and their copies, in batches. The next batch is read when the previous one has been deleted. */
async function* olderFiles(
  filter: Omit<HistoryFilter, 'limit'> & { readonly among: readonly string[]; readonly before: number },
  { database, destinations }: Uploader,
): AsyncGenerator<RemovalTarget[]> {
  const { among, before } = filter
  const isOld = ({ time, destination }: HistoryEntry) => among.includes(destination) && time < before
  const seen = new Set<string>()
  for (let after: HistoryEntry | undefined; ; ) {
    const page = { ...filter, after, limit: AT_ONCE }
    const entries = await database.read(db => findFiles(db, page))
    after = entries.at(-1)
    if (!after) return
    const objects = await withCopies(entries, { database, destinations }, isOld)
    const fresh = objects.filter(({ name }) => !seen.has(name))
    for (const { name } of fresh) seen.add(name)
    yield fresh
  }
}

function toLine(
  { destination, key }: RemovalTarget,
  removal: Removal,
  gone: string,
  { mask }: Terminal,
): string {
  const what = `${destination}  ${key}`
  if (removal.kind === 'removed') return oneLine(`${gone.padEnd(8)}  ${what}`)
  if (removal.kind === 'kept')
    return oneLine(
      `kept      ${what}: ${removal.others === 1 ? 'another upload shares' : `${removal.others} other uploads share`} it`,
    )
  if (removal.kind === 'manual') return oneLine(`by hand   ${what}: ${removal.deleteUrl}`)
  return oneLine(`FAILED    ${what}: ${mask(removal.problem)}`)
}
