import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { decodeText } from '../../decode-text.ts'
import { membersOf } from '../../members.ts'
import { isLink, oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { readAtMost } from '../read-at-most.ts'
import type { Result } from '../result.ts'

/** Maximum size of the results, bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** Reads the output of `upload --format json` or `ndjson`. */
export async function readResults(name: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<Result[]> {
  const text = await (name === '-' ? readAll(context.stdin) : readFileOf(resolve(context.cwd, name)))
  const shown = name === '-' ? 'Standard input' : oneLine(name)
  const fail = () => new Error(`${shown} is not output of "upload-server upload --format json".`)
  try {
    const isList = text.trimStart().startsWith('[')
    const found: unknown[] = isList
      ? JSON.parse(text)
      : text
          .split('\n')
          .filter(line => line.trim() !== '')
          .map(line => JSON.parse(line))
    if (found.length === 0 && text.trim() === '') throw fail()
    return found.map(toResult)
  } catch {
    throw fail()
  }
}

/** Validates a result, because the file may come from somebody else. */
function toResult(value: unknown): Result {
  const { name, url, error, ...more } = membersOf(value)
  if (typeof name !== 'string' || (url !== undefined && !isLink(url))) throw new Error('no result')
  const facts = ['size', 'width', 'height'].flatMap(key =>
    Number.isSafeInteger(more[key]) ? [[key, more[key]] as const] : [],
  )
  const words = ['sha256', 'contentType', 'code', 'finalizationId'].flatMap(key =>
    typeof more[key] === 'string' ? [[key, more[key]] as const] : [],
  )
  return {
    name,
    ...(url !== undefined && { url }),
    ...(error !== undefined && { error: String(error) }),
    ...Object.fromEntries([...facts, ...words]),
  }
}

async function readFileOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    return await readAll(file.createReadStream({ autoClose: false }))
  } finally {
    await file.close()
  }
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const bytes = await readAtMost(stream, MOST_BYTES)
  if (bytes === undefined) throw new Error('The results are larger than 64 MiB.')
  return decodeText(bytes)
}
