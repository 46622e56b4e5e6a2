import sharp from 'sharp'
import { expect } from 'vitest'
import { type Answer, download, upload } from './form.ts'
import { startApp, type TestApp } from './start-app.ts'

export type Rgb = [number, number, number]

export const RED: Rgb = [255, 0, 0]

/** A picture of one colour. */
export function plain(width: number, height: number, [r, g, b]: Rgb = RED) {
  return sharp({ create: { width, height, channels: 3, background: { r, g, b } } })
}

/** A server with these `images` options, whose only destination has these options and keeps names. */
export function startWith(pictures: object, more: object = {}): Promise<TestApp> {
  const local = {
    Default: { directory: './files', serve: true, keyTemplate: '{filename}{extname}', ...more },
  }
  return startApp({ config: { images: pictures, providers: { local } } })
}

export async function store(app: TestApp, name: string, bytes: Uint8Array, query = ''): Promise<Answer> {
  return upload(`${app.url}/upload${query}`, { [name]: bytes })
}

/** What lies behind the only link of an answer. */
export async function open(answer: Answer) {
  expect(answer.message).toBeUndefined()
  const bytes = await download(answer.result[0]!)
  const [item] = answer.items
  expect(item).toMatchObject({ size: bytes.length, imgUrl: answer.result[0] })
  const meta = await sharp(bytes, { animated: true }).metadata()
  const { data, info } = await sharp(bytes, { animated: true })
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number): Rgb =>
    [...data.subarray((y * info.width + x) * info.channels).subarray(0, 3)] as Rgb
  return { bytes, meta, at, item: item! }
}

export function expectColour(found: Rgb, wanted: Rgb): void {
  for (const [index, value] of wanted.entries())
    expect(Math.abs(found[index]! - value), `${found}`).toBeLessThan(90)
}
