import { readFileSync } from 'node:fs'
import { http } from '../../../src/providers/http/index.ts'
import { describePreset, type Exchange } from '../../helpers/http-exchange.ts'

/** The configurations of docs/destinations/http.md, by their names. */
const PAGE = readFileSync(new URL('../../../docs/destinations/http.md', import.meta.url), 'utf8')
const RECIPES = Object.assign(
  {},
  ...[...PAGE.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(
    ([, text = '']) => JSON.parse(text).providers.http,
  ),
) as Record<string, Record<string, unknown>>

/** A recipe whose address is below another one, and whose secrets are these. */
function recipe(name: string, secrets: Record<string, string>) {
  return (base: string) => {
    const { pathname } = new URL(String(RECIPES[name]?.['url']))
    return { ...RECIPES[name], url: base + pathname, secrets }
  }
}

const CLOUDFLARE: Exchange = {
  source: ['developers.cloudflare.com/images/storage/upload-images'],
  request: {
    method: 'POST',
    path: '/client/v4/accounts/0123456789abcdef/images/v1',
    headers: { authorization: 'Bearer cf-0123456789' },
    file: 'file',
  },
  success: {
    status: 200,
    body: {
      result: { id: '2cdc28f0', filename: 'image.png', requireSignedURLs: false, variants: ['{{url}}'] },
      success: true,
      errors: [],
      messages: [],
    },
  },
  refusal: {
    status: 403,
    body: {
      result: null,
      success: false,
      errors: [{ code: 10000, message: 'Authentication error' }],
      messages: [],
    },
    says: 'Authentication error',
  },
  others: [],
}

describePreset({
  name: 'http as Cloudflare Images',
  provider: http,
  exchange: CLOUDFLARE,
  options: recipe('cloudflare-images', { token: 'cf-0123456789' }),
  wrong: { secrets: { token: 'cf-9876543210' } },
  secrets: ['cf-0123456789', 'cf-9876543210'],
  without: { largeFiles: 'Cloudflare takes pictures of 10 MB', emptyFiles: 'they are no pictures' },
})

const CLOUDINARY: Exchange = {
  source: [
    'cloudinary.com/documentation/image_upload_api_reference',
    'cloudinary.com/documentation/upload_presets',
  ],
  request: {
    method: 'POST',
    path: '/v1_1/demo/image/upload',
    fields: { upload_preset: 'preset-0123456789' },
    file: 'file',
  },
  success: { status: 200, body: { public_id: 'a', format: 'png', url: '{{url}}', secure_url: '{{url}}' } },
  refusal: {
    status: 400,
    body: { error: { message: 'Upload preset not found' } },
    says: '400: Upload preset not found',
  },
  others: [],
}

describePreset({
  name: 'http as Cloudinary',
  provider: http,
  exchange: CLOUDINARY,
  options: recipe('cloudinary', { preset: 'preset-0123456789' }),
  wrong: { secrets: { preset: 'preset-9876543210' } },
  secrets: ['preset-0123456789', 'preset-9876543210'],
  without: { largeFiles: 'Cloudinary takes pictures of 10 MB', emptyFiles: 'they are no pictures' },
})
