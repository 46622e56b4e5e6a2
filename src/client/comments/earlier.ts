import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import type { HeldFile } from '../../files/held.ts'
import type { Context } from '../context.ts'
import { type Entry, findEntries } from '../entries.ts'
import { compare } from '../reports/pairs.ts'
import type { Result } from '../result.ts'

/** Earlier images. Only those that have changed are uploaded. */
export interface Earlier {
  readonly entries: readonly Entry[]
  /** The images to compare, after the earlier and the present ones have been uploaded. */
  conclude(earlier: readonly Result[], now: readonly Result[]): { before: Result[]; after: Result[] }
}

/** Compares a folder with the files to upload. It compares the local bytes, because a server may change images. */
export async function findEarlier(
  folder: string,
  now: readonly Entry[],
  context: Pick<Context, 'cwd' | 'platform'>,
  signal: AbortSignal,
): Promise<Earlier> {
  const found = await findEntries([folder], {}, context)
  const [fault] = found.flatMap(one => one.fault ?? [])
  if (fault !== undefined) throw new Error(`--compare ${folder}: ${fault}.`)
  const [before, after] = await Promise.all([hashAll(found, signal), hashAll(now, signal)])
  const changed = new Set(compare(before, after).changed.map(pair => pair.before))
  const places = before.flatMap((one, index) => (changed.has(one) ? [index] : []))
  const isSent = new Set(places)
  return {
    // If object keys don't depend on the content, the earlier image would otherwise replace the new one of the same name.
    entries: found.flatMap((entry, index) =>
      isSent.has(index) ? [{ ...entry, fileName: `before-${basename(entry.path)}` }] : [],
    ),
    conclude: (earlier, now) => ({
      before: before.map((one, index) => {
        const uploaded = earlier[places.indexOf(index)]
        return { ...one, ...uploaded, ...hashOf(one) }
      }),
      after: now.map((one, index) => ({ ...one, ...hashOf(after[index]) })),
    }),
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
