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
import { confirm } from '../confirm.ts'
import type { Call } from '../define.ts'
import { openForCommand } from '../open.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** Objects that are listed before the question. */
const LISTED = 20
/** Entries that are read at a time. */
const AT_ONCE = 500
/** Objects that are deleted at a time, before their lines are printed. */
const SHOWN_AT_ONCE = 100

/** `upload-server remove`: returns 0 if everything was deleted. */
export async function run({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { destination, olderThan, path, dryRun, yes } = options
  const isSelection = olderThan !== undefined
  if (isSelection === words.length > 0 || (isSelection && destination === undefined))
    throw new Error('Specify links, object keys or ids, or --destination with --older-than.')
  if (!dryRun && !yes && !terminal.canAsk)
    throw new Error(
      'Could not ask for confirmation without a terminal. Add --yes to delete, or --dry-run to list what would be deleted.',
    )
  const { uploader, mask } = await openForCommand(options, terminal, { use: dryRun ? 'read' : 'change' })
  try {
    const among = uploader.destinations
      .map(idOf)
      .filter(id => destination === undefined || id === destination || id.startsWith(`${destination}/`))
    if (among.length === 0) throw new Error(`"${destination}" is not a destination of this configuration.`)
    const source = isSelection
      ? olderFiles(olderThan, path, among, uploader)
      : await named(words, among, uploader)
    let [isFirst, failures, count] = [true, source.missing.length, 0]
    for (const word of source.missing) terminal.note(oneLine(`${word}: not found in the upload history`))
    for (const { word, at } of source.gone) terminal.note(oneLine(`${word}: was already deleted at ${at}`))
    for await (const objects of source.batches) {
      if (isFirst && !dryRun) {
        await list(objects.slice(0, LISTED), uploader, terminal)
        const whole = (await source.count?.()) ?? objects.length
        const more = whole > LISTED ? ` (the first ${LISTED} are listed)` : ''
        const what = isSelection ? ` older than ${showDuration(olderThan)} and their copies` : ''
        const question = `Permanently delete ${whole === 1 ? 'this file' : `these ${whole} files`}${what}?${more}`
        if (!(await confirm(question, yes, false, terminal))) return 1
      }
      isFirst = false
      for (let start = 0; start < objects.length; start += SHOWN_AT_ONCE) {
        const some = objects.slice(start, start + SHOWN_AT_ONCE)
        const removals = await (dryRun ? previewAll(some, uploader) : removeObjects(some, uploader))
        for (const [index, removal] of removals.entries()) {
          if (removal.kind === 'failed' || removal.kind === 'manual') failures++
          count++
          // There is one result for each object.
          const object = some[index] as RemovalTarget
          terminal.print(oneLine(toLine(object, removal, dryRun ? 'remove' : 'removed', mask)))
        }
      }
    }
    if (count === 0 && source.missing.length === 0 && source.gone.length === 0)
      terminal.note('No files found.')
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}

async function previewAll(objects: readonly RemovalTarget[], uploader: Uploader): Promise<Removal[]> {
  const removals: Removal[] = []
  for (const object of objects) removals.push(await previewRemoval(object, uploader))
  return removals
}

/** The objects to delete, in batches. The next batch is read when the previous one has been deleted. */
interface RemovalBatches {
  readonly batches: Iterable<readonly RemovalTarget[]> | AsyncIterable<readonly RemovalTarget[]>
  /** Arguments that match no file. */
  readonly missing: readonly string[]
  /** Arguments whose files were deleted before, with the time. */
  readonly gone: readonly { readonly word: string; readonly at: string }[]
  /** Number of objects in all batches. */
  count?(): Promise<number>
}

async function named(
  words: readonly string[],
  among: readonly string[],
  uploader: Uploader,
): Promise<RemovalBatches> {
  const [found, missing, gone]: [RemovalTarget[], string[], { word: string; at: string }[]] = [[], [], []]
  for (const word of words) {
    const objects = await findByWord(word, among, uploader)
    const removedAt = objects.length > 0 ? undefined : await findRemoved(word, among, uploader)
    if (removedAt !== undefined) gone.push({ word, at: showMoment(removedAt) })
    else if (objects.length === 0) missing.push(word)
    found.push(...objects)
  }
  return { batches: found.length > 0 ? [found] : [], missing, gone }
}

function olderFiles(
  age: number,
  folder: string | undefined,
  among: readonly string[],
  { database, destinations }: Uploader,
): RemovalBatches {
  const before = Date.now() - age
  const filter: Omit<HistoryFilter, 'limit'> = {
    among,
    before,
    isRemoved: false,
    folder: folder?.replace(/^\/+|(?<!\/)\/+$/g, '') || undefined,
  }
  async function* batches() {
    const seen = new Set<string>()
    for (let after: HistoryEntry | undefined; ; ) {
      const page = { ...filter, after, limit: AT_ONCE }
      const entries = await database.read(db => findFiles(db, page))
      after = entries.at(-1)
      if (!after) return
      const isOld = ({ time, destination }: { time: number; destination: string }) =>
        among.includes(destination) && time < before
      const objects = await withCopies(entries, { database, destinations }, isOld)
      const fresh = objects.filter(({ name }) => !seen.has(name))
      for (const { name } of fresh) seen.add(name)
      if (fresh.length > 0) yield fresh
    }
  }
  return {
    batches: batches(),
    missing: [],
    gone: [],
    count: () => database.read(db => countFiles(db, filter)),
  }
}

async function list(
  objects: readonly RemovalTarget[],
  uploader: Uploader,
  terminal: Terminal,
): Promise<void> {
  for (const object of objects)
    terminal.note(oneLine(toLine(object, await previewRemoval(object, uploader), 'remove', terminal.mask)))
}

function toLine(
  { destination, key }: RemovalTarget,
  removal: Removal,
  gone: string,
  mask: (text: string) => string,
): string {
  const what = `${destination}  ${key}`
  if (removal.kind === 'removed') return `${gone.padEnd(8)}  ${what}`
  if (removal.kind === 'kept')
    return `kept      ${what}: ${removal.others === 1 ? 'another upload shares' : `${removal.others} other uploads share`} it`
  if (removal.kind === 'manual') return `by hand   ${what}: ${removal.deleteUrl}`
  return `FAILED    ${what}: ${mask(removal.problem)}`
}
