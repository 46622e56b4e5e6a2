import { inMemory } from '../body.ts'
import { mapConcurrently } from '../flow/map-concurrently.ts'
import { isObject } from '../members.ts'
import { isLink } from '../safe-text.ts'
import type { Connection, ServerRequest } from './api/connection.ts'
import { openPart, type Part } from './api/part.ts'
import type { Context } from './context.ts'
import type { Entry } from './entries.ts'
import type { Result } from './result.ts'
import type { SoughtFile } from './uploads.ts'

export type Numbered = readonly [index: number, entry: Entry]

/** From this many files on, the client asks first which of them the server has. In one request, it asks for so many. */
const ASKED_FROM = 20
const ASKED_AT_ONCE = 500

interface Asking {
  readonly connection: Connection
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
  numbered: readonly Numbered[],
  { connection, context, concurrency, query }: Asking,
  settle: (index: number, result: Result) => void,
  signal: AbortSignal,
): Promise<ReadonlySet<number>> {
  const known = new Set<number>()
  let canTell = numbered.length >= ASKED_FROM

  async function ask(parts: readonly (readonly [number, Part])[]): Promise<void> {
    const files = parts.map(([, { fileName, facts }]) => ({ name: fileName, ...facts }))
    const reply = await connection.post(toQuestion(files, query), signal)
    // Each further request with a wrong key would bring the address closer to being locked out.
    if (reply.code === 'unauthorized' || (reply.code === 'no_token' && !reply.transient))
      for (const [index, { name }] of numbered) {
        known.add(index)
        settle(index, { name, error: context.mask(reply.message ?? ''), code: reply.code })
      }
    const links = readLinks(reply.text) ?? []
    canTell = links.length === parts.length
    for (const [place, [index, { entry, facts }]] of parts.entries()) {
      const url = canTell ? links[place] : undefined
      if (url === undefined) continue
      known.add(index)
      settle(index, { name: entry.name, url, ...facts })
    }
  }

  const local = numbered.filter(([, { kind, fault }]) => kind === 'file' && fault === undefined)
  let asked: Promise<void> | undefined
  for (let at = 0; at < local.length && canTell && !signal.aborted; at += ASKED_AT_ONCE) {
    const some = local.slice(at, at + ASKED_AT_ONCE)
    const hashed = await mapConcurrently(some, concurrency, async ([index, entry]) => {
      const part = await openPart(entry, context, signal).catch(() => undefined)
      await part?.close()
      return part ? [[index, part] as const] : []
    })
    const parts = hashed.flat()
    await asked
    // The next files are hashed while the server looks for these.
    if (parts.length > 0 && canTell && !signal.aborted) asked = ask(parts)
  }
  await asked
  return known
}

/** A request to `POST /upload/known`. */
export function toQuestion(files: readonly SoughtFile[], query: Asking['query']): ServerRequest {
  const content = inMemory(Buffer.from(JSON.stringify({ files })))
  return { path: 'known', query, body: { ...content, contentType: 'application/json' }, count: 0 }
}

/** The links in its response, in order. Undefined if it is another response, for example of an older server. */
export function readLinks(text = ''): readonly (string | undefined)[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const files = isObject(value) ? value['files'] : undefined
    if (!Array.isArray(files)) return undefined
    return files.map((file: unknown) => {
      const url = isObject(file) ? file['url'] : undefined
      return isLink(url) ? url : undefined
    })
  } catch {
    return undefined
  }
}
