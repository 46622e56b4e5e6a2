import { createHash } from 'node:crypto'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { REVIEW_SUFFIX } from '../../payload/file-name.ts'
import { toJsonLine } from '../../safe-text.ts'
import { entryOfBytes } from '../entries.ts'
import { type Uploads, uploadAll } from '../uploads.ts'
import type { FetchList } from './earlier.ts'
import { parseReview } from './read-results.ts'
import { type Review, type ReviewRow, sortRows } from './review.ts'

/** One of the parts of a test run that several jobs share. */
export interface Shard {
  /** From 1 on. */
  readonly index: number
  readonly of: number
}

/** Lists that are read at the same time. */
const AT_ONCE = 16

/**
 * Stores the review of one shard at the destination, and publishes those of all shards that are there. Afterwards it looks again:
 * another shard may have stored its own in the meantime, and written the comment before. So the last one that writes has seen all.
 *
 * @param run identifies the run and its comment
 * @throws Error if the reviews can't be stored or found
 */
export async function publishShards(
  own: Review,
  { index, of }: Shard,
  run: readonly (string | undefined)[],
  { uploads, fetch, signal }: { uploads: Uploads; fetch: FetchList; signal: AbortSignal },
  publish: (merged: Review) => Promise<void>,
): Promise<void> {
  const id = createHash('sha256').update(JSON.stringify(run)).digest('hex').slice(0, 16)
  const names = Array.from({ length: of }, (_, at) => `shards-${id}-${at + 1}-of-${of}${REVIEW_SUFFIX}`)
  const list = entryOfBytes(names[index - 1] ?? '', Buffer.from(toJsonLine(own)))
  const [stored] = await uploadAll(uploads, [list], signal)
  if (stored?.url === undefined) throw new Error(`its list of images was not stored: ${stored?.error}`)
  // The signature of a link is another one each time.
  const withoutSignature = (link = '') => link.split('?', 1)[0] ?? ''
  /** Lists that were read, by their links: a list that is stored again has another link. */
  const read = new Map<string, Review>()
  const readList = async (link: string | undefined, at: number): Promise<Review[]> => {
    if (at === index - 1) return [own]
    const known = read.get(withoutSignature(link))
    if (known || link === undefined) return known ? [known] : []
    const bytes = await fetch(link, signal)
    if (bytes === undefined) return []
    const review = parseReview(bytes)
    read.set(withoutSignature(link), review)
    return [review]
  }
  let published = ''
  // Each round is for a shard that has come in, or was run again.
  for (let round = 0; round < 2 * of + 2; round++) {
    const links = await uploads.find(
      names.map(name => ({ name })),
      signal,
    )
    if (links[index - 1] === undefined)
      throw new Error('the server finds no lists of this client. Use an upload key or a token')
    const found = links.map(withoutSignature).join(' ')
    if (found === published) return
    published = found
    const reviews = await mapConcurrently(links, AT_ONCE, readList)
    await publish(mergeShards(reviews.flat(), of, own))
  }
}

/** Joins the reviews of shards. Each of them has compared its images with all earlier ones. */
export function mergeShards(reviews: readonly Review[], of: number, { run, baseline }: Review): Review {
  const rows = reviews.flatMap(review => review.rows)
  // Earlier images that are not gone: another shard has them, or they were renamed, once.
  const kept = new Set(rows.flatMap(({ name, state }) => (state === 'gone' ? [] : [name])))
  const present = rows.flatMap((row): ReviewRow[] => {
    const { name, state, from = '', after } = row
    if (state === 'gone') return []
    if (state === 'renamed' && kept.has(from)) return [{ name, state: 'new', ...(after && { after }) }]
    if (state === 'renamed') kept.add(from)
    return [row]
  })
  const gone = rows.filter(({ name, state }) => {
    const isGone = state === 'gone' && reviews.length === of && !kept.has(name)
    if (isGone) kept.add(name)
    return isGone
  })
  const earlier = baseline ?? reviews.find(one => one.baseline)?.baseline
  return {
    rows: sortRows([...present, ...gone]),
    ...(run && { run }),
    ...(earlier && { baseline: earlier }),
    shards: { found: reviews.length, of },
  }
}
