import { randomUUID } from 'node:crypto'
import { inMemory } from '../body.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { memberAt, parseJson } from '../members.ts'
import { isLink } from '../safe-text.ts'
import type { ServerRequest } from './api/connection.ts'
import { openPart } from './api/part.ts'
import type { Post } from './api/retries.ts'
import type { Context } from './context.ts'
import type { Entry } from './entries.ts'
import type { Result } from './result.ts'
import type { SoughtFile } from './uploads.ts'

/** From this many files on, the client asks first which of them the server has. In one request, it asks for so many. */
const ASKED_FROM = 20
const ASKED_AT_ONCE = 500

interface Asking {
  readonly post: Post
  readonly context: Context
  /** Files that are hashed at the same time. */
  readonly concurrency: number
  readonly query: NonNullable<ServerRequest['query']>
}

/**
 * Asks which files the server has, and settles them. A server that can't tell gets all files.
 *
 * @returns the indexes of the files that are settled
 */
export async function settleKnown(
  entries: readonly Entry[],
  { post, context, concurrency, query }: Asking,
  settle: (index: number, result: Result) => void,
  signal: AbortSignal,
): Promise<ReadonlySet<number>> {
  const known = new Set<number>()
  const local = [...entries.entries()].filter(([, { kind, fault }]) => kind === 'file' && !fault)
  if (local.length < ASKED_FROM) return known
  for (let at = 0; at < local.length && !signal.aborted; at += ASKED_AT_ONCE) {
    const hashed = await mapConcurrently(
      local.slice(at, at + ASKED_AT_ONCE),
      concurrency,
      async ([index, entry]) => {
        const part = await openPart(entry, context, signal).catch(() => undefined)
        await part?.close()
        return part ? [{ index, ...part }] : []
      },
    )
    const parts = hashed.flat()
    const files = parts.map(({ fileName, facts }) => ({ name: fileName, ...facts }))
    // Once, because other servers of this API may respond to the question with anything.
    const { text } = await post(toQuestion(files, query), randomUUID(), signal, 1)
    const links = readLinks(text)
    if (links?.length !== parts.length) break
    for (const [place, { index, entry, facts }] of parts.entries()) {
      const url = links[place]
      if (url === undefined) continue
      known.add(index)
      settle(index, { name: entry.name, url, ...facts })
    }
  }
  return known
}

/** A request to `POST /upload/known`. */
export function toQuestion(files: readonly SoughtFile[], query: Asking['query']): ServerRequest {
  const content = inMemory(Buffer.from(JSON.stringify({ files })))
  return { path: 'known', query, body: { ...content, contentType: 'application/json' } }
}

/** The links in its response, in order. Undefined if it is another response, for example of an older server. */
export function readLinks(text = ''): readonly (string | undefined)[] | undefined {
  const files = memberAt(parseJson(text), 'files')
  if (!Array.isArray(files)) return undefined
  const urls = files.map(file => memberAt(file, 'url'))
  return urls.map(url => (isLink(url) ? url : undefined))
}
