import { isDeepStrictEqual } from 'node:util'
import { FORMATS, POSITIONS, SOURCE_FORMATS } from '../../pictures/options.ts'
import { isRecord, type Json } from '../json.ts'
import { compact, type OnNote, text } from './json.ts'

/** PicList's names for our formats. */
const SPELLINGS: Record<string, string> = { jpg: 'jpeg', heif: 'avif', tif: 'tiff' }

export interface Pictures {
  /** Image options of all destinations; undefined if images are not changed. */
  readonly general: Json | undefined
  /** Image options that a destination has instead of the general ones; undefined if it has none. */
  own(type: string, id: string | undefined): Json | undefined
}

/** Reads `buildIn.compress` and `buildIn.watermark`, with their overrides for uploaders (`…Map`) and for single destinations. */
export function readPictures(buildIn: Json, note: OnNote): Pictures {
  const said = new Set<string>()
  const noteOnce: OnNote = (path, what) => {
    if (said.has(path + what)) return
    said.add(path + what)
    note(path, what)
  }
  noteSkipped(buildIn, note)
  const entries = Array.isArray(buildIn.list) ? buildIn.list : []
  const compress = isRecord(buildIn.compress) ? buildIn.compress : {}
  const watermark = isRecord(buildIn.watermark) ? buildIn.watermark : {}
  const general = translate(compress, watermark, 'buildIn', noteOnce)
  return {
    general,
    own(type, id) {
      const index = entries.findIndex(one => isRecord(one) && id !== undefined && one.id === id)
      const entry: Json = isRecord(entries[index]) ? entries[index] : {}
      const mine = translate(
        { ...forUploader(compress, type), ...(isRecord(entry.compress) && entry.compress) },
        { ...forUploader(watermark, type), ...(isRecord(entry.watermark) && entry.watermark) },
        index < 0 ? 'buildIn' : `buildIn.list[${index}]`,
        noteOnce,
      )
      return isDeepStrictEqual(mine, general) ? undefined : (mine ?? {})
    },
  }
}

/** Applies the overrides for one uploader. */
function forUploader(section: Json, type: string): Json {
  const own = Object.entries(section).flatMap(([name, value]): [string, unknown][] =>
    name.endsWith('Map') && isRecord(value) && Object.hasOwn(value, type)
      ? [[name.slice(0, -'Map'.length), value[type]]]
      : [],
  )
  return { ...section, ...Object.fromEntries(own) }
}

function translate(compress: Json, watermark: Json, path: string, note: OnNote): Json | undefined {
  noteUnsupported(compress, watermark, path, note)
  const quality = readNumber(compress.quality, 1, 99)
  const format = readFormat(compress, `${path}.compress`, note)
  const pictures = compact({
    format,
    // PicList always keeps the converted image, even if it is larger.
    larger: format === undefined ? undefined : true,
    quality: quality === undefined ? undefined : Math.round(quality),
    resize: readResize(compress),
    stripMetadata: isOn(compress.isRemoveExif) || undefined,
    watermark: isOn(watermark.isAddWatermark) ? readWatermark(watermark, path, note) : undefined,
  })
  return Object.keys(pictures).length > 0 ? pictures : undefined
}

function noteUnsupported(compress: Json, watermark: Json, path: string, note: OnNote): void {
  const hasMark = isOn(watermark.isAddWatermark)
  const unsupported: [option: string, isUsed: boolean][] = [
    ['compress.isRotate', isOn(compress.isRotate) && Boolean(readNumber(compress.rotateDegree, -360, 360))],
    ['compress.isFlip', isOn(compress.isFlip)],
    ['compress.isFlop', isOn(compress.isFlop)],
    ['watermark.watermarkDegree', hasMark && Boolean(readNumber(watermark.watermarkDegree, -360, 360))],
    ['watermark.isFullScreenWatermark', hasMark && isOn(watermark.isFullScreenWatermark)],
  ]
  for (const [option, isUsed] of unsupported)
    if (isUsed) note(`${path}.${option}`, 'was ignored: it is not supported')
}

function isOn(value: unknown): boolean {
  return value === true
}

/** Reads `isConvert`: one target format for all source formats except those in `formatConvertObj`. */
function readFormat(compress: Json, path: string, note: OnNote): unknown {
  if (!isOn(compress.isConvert)) return undefined
  const all = spell(compress.convertFormat ?? 'jpg')
  const single = parseObject(compress.formatConvertObj)
  const named = Object.entries(single).flatMap(([from, to]): [string, string][] => {
    const [source, target] = [spell(from), spell(to)]
    const isKnown = isOneOf(SOURCE_FORMATS, source) && (isOneOf(FORMATS, target) || source === target)
    if (isKnown) return [[source, target]]
    note(
      `${path}.formatConvertObj`,
      `was ignored for "${from}": converting it to "${String(to)}" is not supported`,
    )
    return []
  })
  if (all !== undefined && !isOneOf(FORMATS, all))
    note(`${path}.convertFormat`, `was ignored: converting to "${all}" is not supported`)
  const general = isOneOf(FORMATS, all) ? all : undefined
  if (named.length === 0) return general
  const targets = new Map<string, string>(general ? SOURCE_FORMATS.map(source => [source, general]) : [])
  // A format that is mapped to itself is not converted.
  for (const [source, target] of named) {
    if (source === target) targets.delete(source)
    else targets.set(source, target)
  }
  return targets.size > 0 ? Object.fromEntries(targets) : undefined
}

/** The value is an object in files of the desktop application, and JSON text elsewhere. */
function parseObject(value: unknown): Json {
  if (isRecord(value)) return value
  try {
    const parsed: unknown = JSON.parse(text(value) ?? '{}')
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/** Reads the percentage if that is enabled, otherwise width and height. 0 means that a side is not limited. */
function readResize(compress: Json): Json | undefined {
  const enlarge = compress.skipReSizeOfSmallImg === true ? undefined : true
  if (compress.isReSizeByPercent === true) {
    const percent = readNumber(compress.reSizePercent, 1, 500)
    return percent === undefined ? undefined : { percent, ...(percent > 100 && { enlarge: true }) }
  }
  if (compress.isReSize !== true) return undefined
  const width = readNumber(compress.reSizeWidth, 1, 65_535)
  const height = readNumber(compress.reSizeHeight, 1, 65_535)
  return width === undefined && height === undefined ? undefined : compact({ width, height, enlarge })
}

function readWatermark(watermark: Json, path: string, note: OnNote): Json | undefined {
  const isImage = watermark.watermarkType === 'image'
  const image = text(watermark.watermarkImagePath)
  const words = text(watermark.watermarkText)
  if (isImage ? image === undefined : words === undefined) {
    note(`${path}.watermark`, `was ignored: it has no ${isImage ? 'image file' : 'text'}`)
    return undefined
  }
  const opacity = readNumber(watermark.watermarkImageOpacity, 1, 254)
  return compact({
    ...(isImage ? { image, opacity: opacity && opacity / 255 } : { text: words }),
    ...(!isImage && { font: text(watermark.watermarkFontPath), color: readColour(watermark, path, note) }),
    scale: readNumber(watermark.watermarkScaleRatio, 0.001, 1),
    position: readPosition(watermark, path, note),
  })
}

function readPosition({ watermarkPosition }: Json, path: string, note: OnNote): string | undefined {
  const position = text(watermarkPosition)?.replace('center', 'centre')
  if (position === undefined || isOneOf(POSITIONS, position)) return position
  note(`${path}.watermark.watermarkPosition`, 'was ignored: it is not a valid position')
  return undefined
}

function readColour({ watermarkColor }: Json, path: string, note: OnNote): string | undefined {
  const colour = text(watermarkColor)
  if (colour === undefined || /^#[0-9a-f]{6}(?:[0-9a-f]{2})?$/i.test(colour)) return colour
  const [, r, g, b, a = ''] = /^#([0-9a-f])([0-9a-f])([0-9a-f])([0-9a-f])?$/i.exec(colour) ?? []
  if (r && g && b) return `#${r}${r}${g}${g}${b}${b}${a}${a}`
  note(`${path}.watermark.watermarkColor`, 'was ignored: it must be written "#RRGGBB"')
  return undefined
}

/** Notes image formats that PicList skips. Here, only conversions can skip a format; other files are never changed. */
function noteSkipped(buildIn: Json, note: OnNote): void {
  const skip = isRecord(buildIn.skipProcess) ? text(buildIn.skipProcess.skipProcessExtList) : undefined
  const pictures = (skip ?? '')
    .split(',')
    .filter(name => isOneOf(SOURCE_FORMATS, spell(name.replace('.', ''))))
  if (pictures.length > 0)
    note(
      'buildIn.skipProcess',
      `was ignored: image options apply to all formats, including ${pictures.join(', ')}`,
    )
}

/** PicList stores numbers as they were typed, often as text. */
function readNumber(value: unknown, least: number, most: number): number | undefined {
  const number = typeof value === 'number' ? value : Number(text(value) ?? Number.NaN)
  return number >= least && number <= most ? number : undefined
}

function spell(value: unknown): string | undefined {
  const name = text(value)?.toLowerCase()
  return name === undefined ? undefined : (SPELLINGS[name] ?? name)
}

function isOneOf<T extends string>(names: readonly T[], value: string | undefined): value is T {
  return names.some(name => name === value)
}
