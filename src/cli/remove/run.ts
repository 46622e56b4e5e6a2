import type { HistoryEntry } from '../../store/contract.ts'
import { countFiles, findFiles, type HistoryFilter } from '../../store/history.ts'
import { showDuration, showMoment } from '../../times.ts'
import type { Uploader } from '../../uploader/app.ts'
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
import { isWithin, withUploader } from '../open.ts'
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
  return withUploader(options, terminal, { use: dryRun ? 'read' : 'change' }, async ({ uploader }) => {
    const among = uploader.destinations.map(({ id }) => id).filter(id => isWithin(id, destination))
    if (among.length === 0) throw new Error(`"${destination}" is not a destination of this configuration.`)
    const folder = path?.replace(/^\/+|(?<!\/)\/+$/g, '') || undefined
    const filter = { among, before: Date.now() - (olderThan ?? 0), isRemoved: false, folder }
    const named = isSelection ? undefined : await findNamed(words, among, uploader, terminal)
    let isConfirmed = dryRun || yes
    let hasFound = words.length > 0
    let code = named?.isIncomplete ? 1 : 0
    for await (const objects of named ? [named.objects] : olderFiles(filter, uploader)) {
      if (objects.length > 0 && !isConfirmed) {
        const whole = named?.objects.length ?? (await uploader.database.read(db => countFiles(db, filter)))
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
        hasFound = true
        if (removal.kind === 'failed' || removal.kind === 'manual') code = 1
        // There is one result for each object.
        const object = objects[index] as RemovalTarget
        terminal.print(toLine(object, removal, dryRun ? 'remove' : 'removed', terminal))
      }
    }
    if (!hasFound) terminal.note('No files found.')
    return code
  })
}

/** The objects that arguments name. Prints a line for each argument without one, which is a failure if there never was one. */
async function findNamed(
  words: readonly string[],
  among: readonly string[],
  uploader: Uploader,
  terminal: Terminal,
): Promise<{ readonly objects: readonly RemovalTarget[]; readonly isIncomplete: boolean }> {
  const all: RemovalTarget[] = []
  let isIncomplete = false
  for (const word of words) {
    const objects = await findByWord(word, among, uploader)
    all.push(...objects)
    if (objects.length > 0) continue
    const removedAt = await findRemoved(word, among, uploader)
    isIncomplete ||= removedAt === undefined
    const why =
      removedAt === undefined
        ? 'not found in the upload history'
        : `was already deleted at ${showMoment(removedAt)}`
    terminal.note(oneLine(`${word}: ${why}`))
  }
  return { objects: all, isIncomplete }
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
  const say = (state: string, more = '') => oneLine(`${state.padEnd(8)}  ${destination}  ${key}${more}`)
  switch (removal.kind) {
    case 'removed':
      return say(gone)
    case 'kept':
      return say(
        'kept',
        `: ${removal.others === 1 ? 'another upload shares' : `${removal.others} other uploads share`} it`,
      )
    case 'manual':
      return say('by hand', `: ${removal.deleteUrl}`)
    case 'failed':
      return say('FAILED', `: ${mask(removal.problem)}`)
  }
}
