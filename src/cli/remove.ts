import { type Command, InvalidArgumentError } from 'commander'
import type { HistoryFilter } from '../store/contract.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import { readDuration, showDuration } from '../uploader/expires.ts'
import type { Uploader } from '../uploader/index.ts'
import {
  findByWord,
  previewRemoval,
  type Removal,
  removeObject,
  type Wanted,
  withCopies,
} from '../uploader/removal.ts'
import { configOption, endWith } from './command.ts'
import { confirm } from './confirm.ts'
import { openForCommand } from './open.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

/** Objects that are listed before it is asked. */
const LISTED = 20
/** Entries that are worked off at a time. */
const AT_ONCE = 500

interface RemoveOptions extends CommonOptions {
  /** `provider` or `provider/configName`. */
  destination?: string
  /** Milliseconds. */
  olderThan?: number
  path?: string
  dryRun?: boolean
  yes?: boolean
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('remove')
    .description('remove files that were uploaded, with all their copies')
    .argument('[what...]', 'links, keys, ids of jobs or requests')
    .addOption(configOption())
    .option('--destination <id>', 'only there: "provider" or "provider/configName"')
    .option('--older-than <time>', 'all files of that destination that are older: 90m, 12h, 30d', parseAge)
    .option('--path <folder>', 'of these, those below a folder')
    .option('--dry-run', 'say what would be removed, and remove nothing')
    .option('--yes', 'remove without asking')
    .addHelpText(
      'after',
      `
Examples:
  upload-server remove https://img.example.com/files/blog/2026/11/cat-62c8c6d0.png
  upload-server remove --destination s3/ci --older-than 30d --path screens --dry-run
  upload-server remove --destination s3/ci --older-than 30d --yes

A link or a key stands for its object and all uploads that it came by. Of a job what other jobs name, too, stays. Only what
the history knows is removed.`,
    )
    .action((words: string[], options: RemoveOptions) => endWith(terminal, remove(words, options, terminal)))
}

function parseAge(text: string): number {
  const age = readDuration(text)
  if (age === undefined) throw new InvalidArgumentError('A time is written 90m, 12h or 30d.')
  return age
}

/** `upload-server remove`: 0 when everything is gone that was to go. */
async function remove(words: readonly string[], options: RemoveOptions, terminal: Terminal): Promise<number> {
  const { destination, olderThan, path, dryRun, yes } = options
  const isSelection = olderThan !== undefined
  if (isSelection === words.length > 0 || (isSelection && destination === undefined))
    throw new Error('Name links, keys or jobs, or --destination with --older-than.')
  if (path !== undefined && !isSelection) throw new Error('--path goes with --older-than.')
  if (!dryRun && !yes && !terminal.canAsk)
    throw new Error('Nobody can be asked here: add --yes to remove, or --dry-run to see what that would be.')
  const { uploader, mask } = await openForCommand(options, terminal)
  try {
    const among = uploader.destinations
      .map(idOf)
      .filter(id => destination === undefined || id === destination || id.startsWith(`${destination}/`))
    if (among.length === 0) throw new Error(`${destination} is no destination of this configuration.`)
    const source = isSelection
      ? olderFiles(olderThan, path, among, uploader)
      : await named(words, among, uploader)
    let [isFirst, failures, count] = [true, source.missing.length, 0]
    for (const word of source.missing) terminal.note(oneLine(`${word}: the history knows no such file`))
    for await (const objects of source.batches) {
      if (isFirst && !dryRun) {
        await list(objects.slice(0, LISTED), uploader, terminal)
        const whole = (await source.count?.()) ?? objects.length
        const more = whole > LISTED ? ` (${LISTED} are listed)` : ''
        const what = isSelection ? ` older than ${showDuration(olderThan)}, and their copies,` : ''
        const question = `Remove ${whole === 1 ? 'this file' : `these ${whole} files`}${what} for good?${more}`
        if (!(await confirm(question, yes, false, terminal))) return 1
      }
      isFirst = false
      for (const object of objects) {
        const removal = await (dryRun ? previewRemoval(object, uploader) : removeObject(object, uploader))
        if (removal.kind === 'failed' || removal.kind === 'manual') failures++
        count++
        terminal.print(oneLine(toLine(object, removal, dryRun ? 'would go' : 'removed', mask)))
      }
    }
    if (count === 0 && source.missing.length === 0) terminal.note('Nothing was found.')
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}

/** What is to be removed, in parts of which the next one is looked for when the one before is gone. */
interface Source {
  readonly batches: Iterable<readonly Wanted[]> | AsyncIterable<readonly Wanted[]>
  /** Words that nothing was found for. */
  readonly missing: readonly string[]
  /** Of all parts. */
  count?(): Promise<number>
}

async function named(
  words: readonly string[],
  among: readonly string[],
  { store, destinations }: Uploader,
): Promise<Source> {
  const [found, missing]: [Wanted[], string[]] = [[], []]
  const everywhere = destinations.map(idOf)
  for (const word of words) {
    const objects = await findByWord(store, word, among, everywhere)
    if (objects.length === 0) missing.push(word)
    found.push(...objects)
  }
  return { batches: found.length > 0 ? [found] : [], missing }
}

function olderFiles(
  age: number,
  folder: string | undefined,
  among: readonly string[],
  { store, destinations }: Uploader,
): Source {
  const before = Date.now() - age
  const filter: Omit<HistoryFilter, 'limit'> = {
    ...{ among, before, isRemoved: false, folder: folder?.replace(/^\/+|\/+$/g, '') || undefined },
  }
  async function* batches() {
    const seen = new Set<string>()
    for (let until = before; ; ) {
      const entries = await store.history({ ...filter, before: until, limit: AT_ONCE })
      const last = entries.at(-1)
      if (!last) return
      const isOld = ({ time, destination }: { time: number; destination: string }) =>
        among.includes(destination) && time < before
      const objects = await withCopies(store, entries, destinations.map(idOf), isOld)
      const fresh = objects.filter(({ destination, key }) => !seen.has(`${destination}/${key}`))
      for (const { destination, key } of fresh) seen.add(`${destination}/${key}`)
      if (fresh.length > 0) yield fresh
      // Others may be of the same moment as the last one.
      until = fresh.length > 0 ? last.time + 1 : last.time
    }
  }
  return { batches: batches(), missing: [], count: () => store.countHistory(filter) }
}

async function list(objects: readonly Wanted[], uploader: Uploader, terminal: Terminal): Promise<void> {
  for (const object of objects)
    terminal.note(oneLine(toLine(object, await previewRemoval(object, uploader), 'to go', terminal.mask)))
}

function toLine(
  { destination, key }: Wanted,
  removal: Removal,
  gone: string,
  mask: (text: string) => string,
): string {
  const what = `${destination}  ${key}`
  if (removal.kind === 'removed') return `${gone.padEnd(8)}  ${what}`
  if (removal.kind === 'kept')
    return `stays     ${what}: ${removal.others === 1 ? 'another upload names' : `${removal.others} other uploads name`} it`
  if (removal.kind === 'manual') return `by hand   ${what}: ${removal.deleteUrl}`
  return `FAILED    ${what}: ${mask(removal.problem)}`
}
