import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { http } from '../../../src/providers/http/index.ts'
import {
  describeFormHost,
  describePreset,
  type Exchange,
  openHost,
  serveReply,
} from '../../helpers/http-exchange.ts'
import { objectOf } from '../../helpers/provider-contract.ts'

/** The configurations of docs/destinations/http.md, by their names. */
const PAGE = readFileSync(new URL('../../../docs/destinations/http.md', import.meta.url), 'utf8')
const RECIPES = Object.assign(
  {},
  ...[...PAGE.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(
    ([, text = '']) => JSON.parse(text).providers.http,
  ),
) as Record<string, Record<string, unknown>>

/** A recipe whose addresses are at another host, the API below `base`, and whose secrets are these. */
function recipe(name: string, secrets?: Record<string, string>) {
  return (base: string) => {
    const { origin, pathname } = new URL(String(RECIPES[name]?.['url']))
    const resultUrl = String(RECIPES[name]?.['resultUrl']).replace(origin, new URL(base).origin)
    return { ...RECIPES[name], url: base + pathname, resultUrl, ...(secrets && { secrets }) }
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

describeFormHost({
  name: 'http as Cloudflare Images',
  provider: http,
  exchange: CLOUDFLARE,
  options: recipe('cloudflare-images', { token: 'cf-0123456789' }),
  wrong: { secrets: { token: 'cf-9876543210' } },
  secrets: ['cf-0123456789', 'cf-9876543210'],
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
})

describePreset({
  name: 'http as CloudFlare-ImgBed',
  provider: http,
  exchange: {
    source: ['cfbed.sanyue.de/en/api/upload', 'MarSeventh/CloudFlare-ImgBed functions/upload/index.js'],
    request: {
      method: 'POST',
      path: '/upload',
      query: { returnFormat: 'full' },
      headers: { authorization: 'Bearer imgbed-0123456789' },
      file: 'file',
    },
    success: { status: 200, body: [{ src: '{{url}}' }] },
    refusal: { status: 401, body: 'Unauthorized', says: 'Unauthorized' },
    others: [
      {
        name: 'a blocked address',
        status: 403,
        body: 'Error: Your IP is blocked',
        says: 'Your IP is blocked',
      },
      {
        name: 'an error of the channel',
        status: 500,
        body: 'Error: Please configure R2 database',
        says: 'Please configure R2 database',
        retryable: true,
      },
    ],
  },
  options: recipe('cloudflare-imgbed', { token: 'imgbed-0123456789' }),
  wrong: { secrets: { token: 'imgbed-9876543210' } },
  secrets: ['imgbed-0123456789', 'imgbed-9876543210'],
})

describePreset({
  name: 'http as EasyImages',
  provider: http,
  exchange: {
    source: ['icret/EasyImages2.0 api/index.php', 'icret/EasyImages2.0 app/function.php'],
    request: {
      method: 'POST',
      path: '/api/index.php',
      fields: { token: '1c17b11693cb5ec63859b091c5b9c1b2' },
      file: 'image',
    },
    success: {
      status: 200,
      body: {
        result: 'success',
        code: 200,
        url: '{{url}}',
        srcName: 'picture',
        thumb: '{{base}}/app/thumb.php?img=/i/2026/11/22/a.png',
        del: '{{base}}/app/del.php?hash=a1b2c3',
        id: 0,
        message: 'success',
      },
    },
    refusal: {
      status: 200,
      body: { result: 'failed', code: 202, message: 'Token Error' },
      says: 'Token Error',
    },
    others: [
      {
        name: 'the API is off',
        status: 200,
        body: { result: 'failed', code: 201, message: 'API Closed' },
        says: 'API Closed',
      },
      {
        name: 'users may not delete',
        status: 200,
        body: { result: 'success', url: 'https://img.example.com/i/a.png', del: 'Admin closed user delete' },
        url: 'https://img.example.com/i/a.png',
      },
    ],
  },
  options: recipe('easyimages', { token: '1c17b11693cb5ec63859b091c5b9c1b2' }),
  wrong: { secrets: { token: '2b1c9b5c190b95836ce5bc39611b71c1' } },
  secrets: ['1c17b11693cb5ec63859b091c5b9c1b2', '2b1c9b5c190b95836ce5bc39611b71c1'],
  deleteUrl: '{{base}}/app/del.php?hash=a1b2c3',
})

describePreset({
  name: 'http as Zipline',
  provider: http,
  exchange: {
    source: [
      'diced/zipline src/server/routes/api/upload/index.ts',
      'diced/zipline src/server/middleware/user.ts',
      'diced/zipline src/lib/api/errors.ts',
    ],
    request: {
      method: 'POST',
      path: '/api/upload',
      headers: { authorization: 'zipline-0123456789' },
      file: 'file',
    },
    success: {
      status: 200,
      body: { files: [{ id: 'cm3t', name: 'aB3dE5.png', type: 'image/png', url: '{{url}}' }] },
    },
    refusal: {
      status: 401,
      body: { error: 'E2001: Invalid token', code: 2001, statusCode: 401 },
      says: 'E2001: Invalid token',
    },
    others: [
      {
        name: 'a full quota',
        status: 413,
        body: { error: 'E5002: Storage quota exceeded', code: 5002, statusCode: 413 },
        says: 'E5002: Storage quota exceeded',
      },
    ],
  },
  options: recipe('zipline', { token: 'zipline-0123456789' }),
  wrong: { secrets: { token: 'zipline-9876543210' } },
  secrets: ['zipline-0123456789', 'zipline-9876543210'],
})

describePreset({
  name: 'http as Slink',
  provider: http,
  exchange: {
    source: [
      'docs.slinkapp.io/usage/02-api-key-management',
      'andrii-kryvoviaz/slink services/api/src/UI/Http/Rest/Controller/External/UploadController.php',
      'andrii-kryvoviaz/slink services/api/src/Slink/User/Infrastructure/Auth/ApiKeyAuthenticator.php',
    ],
    request: {
      method: 'POST',
      path: '/api/external/upload',
      headers: { authorization: 'Bearer sk_0123456789', origin: 'https://slink.example.com' },
      file: 'image',
    },
    success: {
      status: 201,
      file: '/image/{{id}}.png',
      body: { url: 'image/{{id}}.png', thumbnailUrl: 'image/{{id}}.png?width=300&height=300', id: '{{id}}' },
    },
    refusal: {
      status: 401,
      body: { error: { message: 'Authentication failed', code: 'INVALID_API_KEY' } },
      says: 'Authentication failed',
    },
    others: [],
  },
  options: recipe('slink', { key: 'sk_0123456789' }),
  wrong: { secrets: { key: 'sk_9876543210' } },
  secrets: ['sk_0123456789', 'sk_9876543210'],
})

const TIME = { like: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }

describePreset({
  name: 'http as Immich',
  provider: http,
  exchange: {
    source: [
      'immich-app/immich server/src/dtos/asset-media.dto.ts',
      'immich-app/immich server/src/services/auth.service.ts',
      'immich-app/immich server/src/utils/access.ts',
    ],
    request: {
      method: 'POST',
      path: '/api/assets',
      query: { slug: 'blog' },
      fields: {
        deviceAssetId: { like: '^[0-9a-f]{64}$' },
        deviceId: 'upload-server',
        fileCreatedAt: TIME,
        fileModifiedAt: TIME,
      },
      file: 'assetData',
    },
    success: {
      status: 201,
      file: '/api/assets/{{id}}/original',
      body: { id: '{{id}}', status: 'created' },
    },
    refusal: {
      status: 401,
      body: { message: 'Invalid share slug', error: 'Unauthorized', statusCode: 401 },
      says: 'Invalid share slug',
    },
    others: [
      {
        name: 'a link that allows no upload',
        status: 401,
        body: { message: 'Unauthorized', statusCode: 401 },
        says: 'Unauthorized',
      },
      {
        name: 'a file that is no picture',
        status: 400,
        body: { message: 'Unsupported file type a.txt', error: 'Bad Request', statusCode: 400 },
        says: 'Unsupported file type a.txt',
      },
    ],
  },
  options: recipe('immich'),
  secrets: [],
})

it('what Immich has already is taken for stored, at its first address', async () => {
  const base = await serveReply(200, { id: '7b0c', status: 'duplicate' })
  const target = await openHost(http, recipe('immich')(base))
  onTestFinished(() => target.close?.())
  const stored = await target.put(objectOf('a.png', Buffer.from('bytes')), new AbortController().signal)
  expect(stored).toEqual({ url: `${base}/api/assets/7b0c/original?slug=blog` })
})
