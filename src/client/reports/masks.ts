import { resolve } from 'node:path'
import { decodeText } from '../../decode-text.ts'
import { describeFileError } from '../../errors.ts'
import { isObject, membersOf } from '../../members.ts'
import type { Area } from '../../payload/dimensions.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { readFileAtMost } from '../read-at-most.ts'

/** The areas of the image with this path. */
export type Masks = (path: string) => readonly Area[]

/** Maximum size of the file, bytes; number of its patterns; areas for one pattern, and of one image. */
const [MOST_BYTES, MOST_PATTERNS, MOST_AREAS] = [1024 * 1024, 1000, 100]

/** Larger numbers are beyond every image that is compared, pixels. */
const MOST_PIXELS = 1_000_000

/**
 * Reads which parts of images are not compared, such as `{ "Card/*.png": [{ "x": 0, "y": 0, "width": 90, "height": 20 }] }`.
 *
 * @throws Error that names the file and what is wrong with it
 */
export async function readMasks(name: string, { cwd }: Pick<Context, 'cwd'>): Promise<Masks> {
  try {
    const bytes = await readFileAtMost(resolve(cwd, name), MOST_BYTES)
    if (bytes === undefined) throw new Error('it is larger than 1 MiB')
    return toMasks(JSON.parse(decodeText(bytes)))
  } catch (error) {
    throw new Error(oneLine(`Could not read ${name} for --masks: ${describeFileError(error)}.`))
  }
}

function toMasks(value: unknown): Masks {
  if (!isObject(value) || Array.isArray(value))
    throw new Error('it must be an object of paths with lists of areas')
  const masks = Object.entries(value)
  if (masks.length > MOST_PATTERNS) throw new Error(`it may have up to ${MOST_PATTERNS} paths`)
  const read = masks.map(([pattern, areas]) => {
    if (!Array.isArray(areas) || areas.length > MOST_AREAS)
      throw new Error(`"${pattern}" must be a list of up to ${MOST_AREAS} areas`)
    return { pattern, areas: areas.map(area => toArea(area, pattern)) }
  })
  return path =>
    read.flatMap(({ pattern, areas }) => (matches(path, pattern) ? areas : [])).slice(0, MOST_AREAS)
}

function toArea(value: unknown, pattern: string): Area {
  const { x, y, width, height } = membersOf(value)
  const [left, top, wide, high] = [x, y, width, height].map(Number)
  const isPixels = [x, y, width, height].every(one => Number.isSafeInteger(one) && Number(one) >= 0)
  if (!isPixels || Math.max(left ?? 0, top ?? 0, wide ?? 0, high ?? 0) > MOST_PIXELS)
    throw new Error(
      `"${pattern}" has an area whose x, y, width and height are not whole numbers from 0 to ${MOST_PIXELS}`,
    )
  return { x: left ?? 0, y: top ?? 0, width: wide ?? 0, height: high ?? 0 }
}

/** Whether a path matches a pattern, in which `*` is any text. It takes time in proportion to the path for each part. */
function matches(path: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return path === first
  if (!path.startsWith(first) || !path.endsWith(last)) return false
  let at = first.length
  for (const part of rest) {
    const found = path.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= path.length - last.length
}
