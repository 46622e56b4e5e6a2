import { expect, it } from 'vitest'
import { translatePicGo } from '../../src/config/picgo/index.ts'
import { pictureSchema } from '../../src/pictures/options.ts'

const WATERMARK = { isAddWatermark: true, watermarkType: 'text', watermarkText: '© me' }

function translate(buildIn: object) {
  const uploader = {
    smms: { configList: [{ _configName: 'a', _id: 'a', token: 't' }], defaultId: 'a' },
    imgur: { configList: [{ _configName: 'b', _id: 'b', clientId: 'c' }], defaultId: 'b' },
  }
  const { config, notes } = translatePicGo({ picBed: { uploader: 'smms' }, uploader, buildIn })
  const providers = config['providers'] as Record<string, Record<string, Record<string, unknown>>>
  const [smms, imgur] = [providers['smms']!['a']!['images'], providers['imgur']!['b']!['images']]
  for (const pictures of [config['images'], smms, imgur])
    if (pictures !== undefined) expect(pictureSchema.safeParse(pictures).error).toBeUndefined()
  return { pictures: config['images'], smms, imgur, notes }
}

it.for<[compress: object, pictures: object | undefined]>([
  [{ quality: 80 }, { quality: 80 }],
  [{ quality: '70' }, { quality: 70 }],
  [{ quality: 100 }, undefined],
  [
    { isConvert: true, convertFormat: 'webp' },
    { format: 'webp', larger: true },
  ],
  [{ isConvert: true }, { format: 'jpeg', larger: true }],
  [{ isConvert: false, convertFormat: 'webp' }, undefined],
  [
    { isConvert: true, convertFormat: 'tiff', formatConvertObj: '{"png":"webp","jpg":"jpg"}' },
    { format: { png: 'webp' }, larger: true },
  ],
  [
    {
      isConvert: true,
      convertFormat: 'webp',
      formatConvertObj: { png: 'jpg', gif: 'gif', tif: 'avif', heic: 'jpg', avif: 'avif' },
    },
    { format: { jpeg: 'webp', png: 'jpeg', webp: 'webp', tiff: 'avif', heic: 'jpeg' }, larger: true },
  ],
  [
    { isReSize: true, reSizeWidth: 500, reSizeHeight: 0, skipReSizeOfSmallImg: true },
    { resize: { width: 500 } },
  ],
  [
    { isReSize: true, reSizeWidth: '500', reSizeHeight: 300 },
    { resize: { width: 500, height: 300, enlarge: true } },
  ],
  [{ isReSize: true, reSizeWidth: 0, reSizeHeight: 0 }, undefined],
  [{ isReSizeByPercent: true, reSizePercent: 50 }, { resize: { percent: 50 } }],
  [{ isReSizeByPercent: true, reSizePercent: 150 }, { resize: { percent: 150, enlarge: true } }],
  [{ isRotate: true, rotateDegree: 0 }, undefined],
  [{ isRemoveExif: true }, { stripMetadata: true }],
])('compress %j', ([compress, pictures]) => {
  expect(translate({ compress }).pictures).toEqual(pictures)
})

it.for<[watermark: object, expected: object]>([
  [{}, { text: '© me' }],
  [
    {
      isFullScreenWatermark: true,
      watermarkDegree: -30,
      watermarkFontPath: '/fonts/a.ttf',
      watermarkScaleRatio: 0.3,
      watermarkColor: '#CCCCCC73',
      watermarkPosition: 'northwest',
    },
    {
      text: '© me',
      font: '/fonts/a.ttf',
      scale: 0.3,
      color: '#CCCCCC73',
      position: 'northwest',
    },
  ],
  [{ watermarkColor: '#abc' }, { text: '© me', color: '#aabbcc' }],
  [
    {
      watermarkType: 'image',
      watermarkImagePath: '/logo.png',
      watermarkPosition: 'center',
      watermarkImageOpacity: 51,
    },
    { image: '/logo.png', position: 'centre', opacity: 0.2 },
  ],
])('watermark %j', ([watermark, expected]) => {
  expect(translate({ watermark: { ...WATERMARK, ...watermark } }).pictures).toEqual({ watermark: expected })
})

it('rotation, mirroring and tiled watermarks are noted, since they are not supported', () => {
  const compress = { isRotate: true, rotateDegree: 90, isFlip: true, isFlop: true }
  const watermark = { ...WATERMARK, isFullScreenWatermark: true, watermarkDegree: -30 }
  expect(translate({ compress, watermark }).notes).toEqual(
    [
      'compress.isRotate',
      'compress.isFlip',
      'compress.isFlop',
      'watermark.watermarkDegree',
      'watermark.isFullScreenWatermark',
    ].map(option => `"buildIn.${option}" was ignored: it is not supported.`),
  )
})

it('deviations of single uploaders and configurations become those of destinations', () => {
  const { pictures, smms, imgur, notes } = translate({
    compress: { quality: 80, isRemoveExif: true, isRemoveExifMap: { imgur: false, smms: true } },
    watermark: { ...WATERMARK, isAddWatermark: false, isAddWatermarkMap: { smms: false } },
    list: [{ id: 'a', compress: { quality: 50 }, watermark: { isAddWatermark: true } }],
  })
  expect(pictures).toEqual({ quality: 80, stripMetadata: true })
  expect(imgur).toEqual({ quality: 80 })
  expect(smms).toEqual({ quality: 50, stripMetadata: true, watermark: { text: '© me' } })
  expect(notes).toEqual([])
})

it('a configuration that does nothing where others do has nothing done', () => {
  const { imgur } = translate({ compress: { quality: 80, qualityMap: { imgur: 100 } } })
  expect(imgur).toEqual({})
})

it('what has no counterpart is named, once', () => {
  const { pictures, notes } = translate({
    compress: { isConvert: true, convertFormat: 'gif', formatConvertObj: { png: 'pdf' } },
    watermark: { ...WATERMARK, watermarkText: '' },
    skipProcess: { skipProcessExtList: 'zip,.gif,jpg' },
  })
  expect(pictures).toBeUndefined()
  expect(notes).toEqual([
    expect.stringMatching(/^"buildIn.skipProcess" was ignored: .* \.gif, jpg\.$/),
    `"buildIn.compress.formatConvertObj" was ignored for "png": converting it to "pdf" is not supported.`,
    `"buildIn.compress.convertFormat" was ignored: converting to "gif" is not supported.`,
    '"buildIn.watermark" was ignored: it has no text.',
  ])
})
