import { type Json, membersOf, parseJson } from '../../members.ts'
import { FORMATS, POSITIONS, SOURCE_FORMATS } from '../../pictures/options.ts'
import { textOf } from '../../providers/shared/picgo-options.ts'
import type { BuildIn } from './build-in.ts'
import { compact, type Old } from './old.ts'

/** PicList's names for our formats. */
const SPELLINGS = new Map([
  ['jpg', 'jpeg'],
  ['heif', 'avif'],
  ['tif', 'tiff'],
])

/** Our `images`, from `buildIn.compress` and `buildIn.watermark`; undefined if images are not changed. */
export function readImages({ section }: BuildIn): Json | undefined {
  const [compress, watermark] = [section('compress'), section('watermark')]
  const quality = compress.number('quality', 1, 99)
  const format = compress.isOn('isConvert') ? readFormat(compress) : undefined
  for (const option of ['isRotate', 'isFlip', 'isFlop'])
    if (compress.isOn(option)) noteMissing(compress, option)
  return compact({
    format,
    // PicList always keeps the converted image, even if it is larger.
    larger: format === undefined ? undefined : true,
    quality: quality === undefined ? undefined : Math.round(quality),
    resize: readResize(compress),
    stripMetadata: compress.isOn('isRemoveExif') || undefined,
    watermark: watermark.isOn('isAddWatermark') ? readWatermark(watermark) : undefined,
  })
}

const noteMissing = (old: Old, option: string) => old.note(option, 'was ignored: it is not supported')

/** One target format for all source formats except those in `formatConvertObj`. */
function readFormat(compress: Old): unknown {
  const all = spell(compress.text('convertFormat') ?? 'jpg')
  const general = FORMATS.find(one => one === all)
  if (!general) compress.note('convertFormat', `was ignored: converting to "${all}" is not supported`)
  const targets: Json = Object.fromEntries(SOURCE_FORMATS.map(source => [source, general]))
  // It is an object in files of the desktop application, and JSON text elsewhere.
  const named = compress.get('formatConvertObj')
  for (const [from, to] of Object.entries(membersOf(typeof named === 'string' ? parseJson(named) : named))) {
    const [source, target] = [SOURCE_FORMATS.find(one => one === spell(from)), spell(to)]
    const isKept = source !== undefined && source === target
    if (source && (isKept || FORMATS.some(one => one === target)))
      targets[source] = isKept ? undefined : target
    else
      compress.note(
        'formatConvertObj',
        `was ignored for "${from}": converting it to ${JSON.stringify(to)} is not supported`,
      )
  }
  const isOne = Object.values(targets).every(target => target === general)
  return isOne ? general : compact(targets)
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
  if (watermark.number('watermarkDegree', -360, 360)) noteMissing(watermark, 'watermarkDegree')
  if (watermark.isOn('isFullScreenWatermark')) noteMissing(watermark, 'isFullScreenWatermark')
  const isImage = watermark.get('watermarkType') === 'image'
  const [image, text] = [watermark.text('watermarkImagePath'), watermark.text('watermarkText')]
  if ((isImage ? image : text) === undefined) {
    watermark.note('', `was ignored: it has no ${isImage ? 'image file' : 'text'}`)
    return undefined
  }
  const opacity = watermark.number('watermarkImageOpacity', 1, 254)
  const color = watermark.readText('watermarkColor', 'it must be written "#RRGGBB"', readColor)
  const position = watermark.readText('watermarkPosition', 'it is not a valid position', given =>
    POSITIONS.find(one => one === given.replace('center', 'centre')),
  )
  return compact({
    ...(isImage
      ? { image, opacity: opacity && opacity / 255 }
      : { text, font: watermark.text('watermarkFontPath'), color }),
    scale: watermark.number('watermarkScaleRatio', 0.001, 1),
    position,
  })
}

function readColor(text: string): string | undefined {
  if (/^#[0-9a-f]{3,4}$/i.test(text)) return text.replace(/[0-9a-f]/gi, digit => digit + digit)
  return /^#[0-9a-f]{6}(?:[0-9a-f]{2})?$/i.test(text) ? text : undefined
}

/** Notes image formats that PicList skips. Here, only conversions can skip a format; other files are never changed. */
export function noteSkipped(buildIn: Old): void {
  const skipped = buildIn.section('skipProcess').text('skipProcessExtList')?.split(',') ?? []
  const images = skipped.filter(name => SOURCE_FORMATS.some(one => one === spell(name.replace('.', ''))))
  if (images.length > 0)
    buildIn.note(
      'skipProcess',
      `was ignored: image options apply to all formats, including ${images.join(', ')}`,
    )
}

function spell(value: unknown): string | undefined {
  const name = textOf(value)?.toLowerCase()
  return name === undefined ? undefined : (SPELLINGS.get(name) ?? name)
}
