import { decodeText } from '../../decode-text.ts'
import { messageOf } from '../../errors.ts'
import { isRecord, membersOf } from '../../members.ts'
import type { Area } from '../../payload/dimensions.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { readNamed } from '../read-at-most.ts'

/** The areas of the image with this path. */
export type Masks = (path: string) => readonly Area[]

/** Maximum number of patterns in the file, and of areas for one pattern and of one image. */
const [MOST_PATTERNS, MOST_AREAS] = [1000, 100]

/** Larger numbers are beyond every image that is compared, pixels. */
const MOST_PIXELS = 1_000_000

/**
 * Reads which parts of images are not compared, such as `{ "Card/*.png": [{ "x": 0, "y": 0, "width": 90, "height": 20 }] }`.
 *
 * @throws Error that names the file and what is wrong with it
 */
export async function readMasks(name: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<Masks> {
  const shown = oneLine(`${name} for --masks`)
  const bytes = await readNamed(name, context, 1, shown)
  try {
    return toMasks(JSON.parse(decodeText(bytes)))
  } catch (error) {
    throw new Error(oneLine(`Could not read ${shown}: ${messageOf(error)}.`))
  }
}

function toMasks(value: unknown): Masks {
  if (!isRecord(value)) throw new Error('it must be an object of paths with lists of areas')
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
  const area = { x: Number(x), y: Number(y), width: Number(width), height: Number(height) }
  const isPixels = [x, y, width, height].every(
    one => Number.isSafeInteger(one) && Number(one) >= 0 && Number(one) <= MOST_PIXELS,
  )
  if (isPixels) return area
  throw new Error(
    `"${pattern}" has an area whose x, y, width and height are not whole numbers from 0 to ${MOST_PIXELS}`,
  )
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
