import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import type { HeldFile } from '../../files/held.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, findEntries, isMissing, NO_FILES } from '../entries.ts'
import { type Comparison, compare } from '../reports/pairs.ts'
import type { Result } from '../result.ts'

/** Earlier images. Only those that have changed are uploaded. */
export interface Earlier {
  readonly entries: readonly Entry[]
  /** The comparison, after the earlier and the present images have been uploaded. */
  conclude(earlier: readonly Result[], now: readonly Result[]): Comparison
}

/** Compares a folder with the files to upload. It compares the local bytes, because a server may change images. */
export async function findEarlier(
  folder: string,
  now: readonly Entry[],
  context: Pick<Context, 'cwd' | 'platform' | 'note'>,
  signal: AbortSignal,
): Promise<Earlier> {
  const all = await findEntries([folder], {}, context)
  const [fault] = all.flatMap(one => one.fault ?? [])
  // The first run of a job has no earlier images.
  const isEmpty = all.length === 1 && (isMissing(fault) || Object.values(NO_FILES).includes(fault ?? ''))
  if (fault !== undefined && !isEmpty) throw new Error(`--compare ${folder}: ${fault}.`)
  if (isEmpty) context.note(oneLine(`--compare ${folder}: ${fault}. All images count as new.`))
  const found = isEmpty ? [] : all
  const [before, after] = await Promise.all([hashAll(found, signal), hashAll(now, signal)])
  const locate = (entries: readonly Entry[], results: readonly Result[]) =>
    results.map((result, index) => ({ result, inside: entries[index]?.inside }))
  const { changed } = compare(locate(found, before), locate(now, after))
  const isChanged = new Set(changed.map(pair => pair.before))
  const places = before.flatMap((one, index) => (isChanged.has(one) ? [index] : []))
  const isSent = new Set(places)
  return {
    // If object keys don't depend on the content, the earlier image would otherwise replace the new one of the same name.
    entries: found.flatMap((entry, index) =>
      isSent.has(index) ? [{ ...entry, fileName: `before-${basename(entry.path)}` }] : [],
    ),
    conclude(earlier, present) {
      const uploaded = before.map((one, index) => ({
        ...one,
        ...earlier[places.indexOf(index)],
        ...hashOf(one),
      }))
      const results = present.map((one, index) => ({ ...one, ...hashOf(after[index]) }))
      return compare(locate(found, uploaded), locate(now, results))
    },
  }
}

const hashOf = (result: Result | undefined) => (result?.sha256 === undefined ? {} : { sha256: result.sha256 })

/** Hashes files one at a time, because parallel reads are not faster on most disks. None after the signal. */
async function hashAll(entries: readonly Entry[], signal: AbortSignal): Promise<Result[]> {
  const results: Result[] = []
  for (const { name, open, fault } of entries) {
    const isOut = fault !== undefined || signal.aborted
    const file = isOut ? undefined : await open?.().catch(() => undefined)
    const sha256 = file && (await hashFile(file, signal))
    results.push({ name, ...(sha256 !== undefined && { sha256 }) })
  }
  return results
}

async function hashFile(file: HeldFile, signal: AbortSignal): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of file.handle.createReadStream({ autoClose: false })) {
      if (signal.aborted) return undefined
      hash.update(chunk)
    }
    return hash.digest('hex')
  } finally {
    await file.close()
  }
}
