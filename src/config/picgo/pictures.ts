import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../../members.ts'
import { FORMATS, POSITIONS, SOURCE_FORMATS } from '../../pictures/options.ts'
import { textOf } from '../../providers/shared/picgo-options.ts'
import { compact, type Old } from './old.ts'

/** PicList's names for our formats. */
const SPELLINGS = new Map([
  ['jpg', 'jpeg'],
  ['heif', 'avif'],
  ['tif', 'tiff'],
])

export interface Pictures {
  /** Image options of all destinations; undefined if images are not changed. */
  readonly general: Json | undefined
  /** Image options that a destination has instead of the general ones; undefined if it has none. */
  own(type: string, id: string | undefined): Json | undefined
}

/**
 * Reads `buildIn.compress` and `buildIn.watermark`, with their overrides for uploaders (`…Map`) and for single destinations.
 *
 * @param entries `buildIn.list`: the options of single destinations, by their `_id`
 */
export function readPictures(buildIn: Old, entries: readonly Old[]): Pictures {
  noteSkipped(buildIn)
  const translateFor = (type: string, entry?: Old) => {
    const open = (name: string) => {
      const [general, own] = [forUploader(buildIn.section(name).all, type), (entry ?? buildIn).section(name)]
      return own.with(entry ? { ...general, ...own.all } : general)
    }
    return translate(open('compress'), open('watermark'))
  }
  const general = translateFor('')
  return {
    general,
    own(type, id) {
      const entry = entries.find(one => id !== undefined && one.text('id') === id)
      const mine = translateFor(type, entry)
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

function translate(compress: Old, watermark: Old): Json | undefined {
  const hasMark = watermark.isOn('isAddWatermark')
  noteUnsupported(compress, watermark, hasMark)
  const quality = compress.number('quality', 1, 99)
  const format = compress.isOn('isConvert') ? readFormat(compress) : undefined
  return compact({
    format,
    // PicList always keeps the converted image, even if it is larger.
    larger: format === undefined ? undefined : true,
    quality: quality === undefined ? undefined : Math.round(quality),
    resize: readResize(compress),
    stripMetadata: compress.isOn('isRemoveExif') || undefined,
    watermark: hasMark ? readWatermark(watermark) : undefined,
  })
}

function noteUnsupported(compress: Old, watermark: Old, hasMark: boolean): void {
  const isTurned = (old: Old, name: string) => Boolean(old.number(name, -360, 360))
  const unsupported: [Old, option: string, isUsed: boolean][] = [
    [compress, 'isRotate', compress.isOn('isRotate') && isTurned(compress, 'rotateDegree')],
    [compress, 'isFlip', compress.isOn('isFlip')],
    [compress, 'isFlop', compress.isOn('isFlop')],
    [watermark, 'watermarkDegree', hasMark && isTurned(watermark, 'watermarkDegree')],
    [watermark, 'isFullScreenWatermark', hasMark && watermark.isOn('isFullScreenWatermark')],
  ]
  for (const [old, option, isUsed] of unsupported)
    if (isUsed) old.note(option, 'was ignored: it is not supported')
}

/** One target format for all source formats except those in `formatConvertObj`. */
function readFormat(compress: Old): unknown {
  const all = spell(compress.text('convertFormat') ?? 'jpg')
  const named: [string, string][] = []
  for (const [from, to] of Object.entries(parseObject(compress.get('formatConvertObj')))) {
    const [source, target] = [spell(from), spell(to)]
    if (isOneOf(SOURCE_FORMATS, source) && (isOneOf(FORMATS, target) || source === target))
      named.push([source, target])
    else
      compress.note(
        'formatConvertObj',
        `was ignored for "${from}": converting it to ${JSON.stringify(to)} is not supported`,
      )
  }
  const general = isOneOf(FORMATS, all) ? all : undefined
  if (all !== general) compress.note('convertFormat', `was ignored: converting to "${all}" is not supported`)
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
    const parsed: unknown = JSON.parse(textOf(value) ?? '{}')
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/** Reads the percentage if that is enabled, otherwise width and height. 0 means that a side is not limited. */
function readResize(compress: Old): Json | undefined {
  const enlarge = compress.isOn('skipReSizeOfSmallImg') ? undefined : true
  if (compress.isOn('isReSizeByPercent')) {
    const percent = compress.number('reSizePercent', 1, 500)
    return percent === undefined ? undefined : { percent, ...(percent > 100 && { enlarge: true }) }
  }
  if (!compress.isOn('isReSize')) return undefined
  const width = compress.number('reSizeWidth', 1, 65_535)
  const height = compress.number('reSizeHeight', 1, 65_535)
  return width === undefined && height === undefined ? undefined : compact({ width, height, enlarge })
}

function readWatermark(watermark: Old): Json | undefined {
  const isImage = watermark.get('watermarkType') === 'image'
  const [image, text] = [watermark.text('watermarkImagePath'), watermark.text('watermarkText')]
  if ((isImage ? image : text) === undefined) {
    watermark.note('', `was ignored: it has no ${isImage ? 'image file' : 'text'}`)
    return undefined
  }
  const opacity = watermark.number('watermarkImageOpacity', 1, 254)
  return compact({
    ...(isImage
      ? { image, opacity: opacity && opacity / 255 }
      : { text, font: watermark.text('watermarkFontPath'), color: readColour(watermark) }),
    scale: watermark.number('watermarkScaleRatio', 0.001, 1),
    position: readPosition(watermark),
  })
}

function readPosition(watermark: Old): string | undefined {
  const position = watermark.text('watermarkPosition')?.replace('center', 'centre')
  if (position === undefined || isOneOf(POSITIONS, position)) return position
  watermark.note('watermarkPosition', 'was ignored: it is not a valid position')
  return undefined
}

function readColour(watermark: Old): string | undefined {
  const colour = watermark.text('watermarkColor')
  if (colour === undefined || /^#[0-9a-f]{6}(?:[0-9a-f]{2})?$/i.test(colour)) return colour
  if (/^#[0-9a-f]{3,4}$/i.test(colour)) return colour.replace(/[0-9a-f]/gi, digit => digit + digit)
  watermark.note('watermarkColor', 'was ignored: it must be written "#RRGGBB"')
  return undefined
}

/** Notes image formats that PicList skips. Here, only conversions can skip a format; other files are never changed. */
function noteSkipped(buildIn: Old): void {
  const { skipProcess } = buildIn.all
  const skip = isRecord(skipProcess) ? textOf(skipProcess.skipProcessExtList) : undefined
  const pictures = (skip ?? '')
    .split(',')
    .filter(name => isOneOf(SOURCE_FORMATS, spell(name.replace('.', ''))))
  if (pictures.length > 0)
    buildIn.note(
      'skipProcess',
      `was ignored: image options apply to all formats, including ${pictures.join(', ')}`,
    )
}

function spell(value: unknown): string | undefined {
  const name = textOf(value)?.toLowerCase()
  return name === undefined ? undefined : (SPELLINGS.get(name) ?? name)
}

function isOneOf<T extends string>(names: readonly T[], value: string | undefined): value is T {
  return names.some(name => name === value)
}
