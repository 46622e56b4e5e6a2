import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'
import { readTextOption } from './shared/picgo-options.ts'
import { withoutSlash } from './shared/public-url.ts'

const id = () => z.union([z.int(), z.string().regex(/^\d+$/)], { error: 'must be a number' }).optional()

const config = z.object({
  url: httpAddress().describe('URL of the site, without /api.'),
  version: z.enum(['v1', 'v2']).default('v2').describe('API version: "v1" for Lsky 1.x, "v2" for Lsky 2.x.'),
  token: secret()
    .optional()
    .describe('Token of the account. Without it, files are uploaded as a guest if the site allows that.'),
  strategyId: id().describe('ID of the storage strategy. v2 only. Default: the strategy of the account.'),
  albumId: id().describe('ID of the album. v2 only.'),
  permission: z
    .enum(['public', 'private'])
    .optional()
    .describe('Visibility of the image in the gallery. v2 only. Default: the setting of the account.'),
})

type Options = z.output<typeof config>

/** A site made with Lsky Pro (the free editions). */
export const lsky = defineProvider({
  type: 'lsky',
  about: {
    family: 'host',
    what: 'Lsky Pro 1.x and 2.x',
    testedAgainst: 'a mock of the documented API',
    example: {
      blog: { url: 'https://img.example.com', token: 'LSKY_TOKEN', albumId: 7, permission: 'public' },
      old: { url: 'https://old.example.com', version: 'v1', token: 'LSKY_OLD_TOKEN' },
    },
    choices: [
      {
        label: 'Lsky Pro · 兰空图床',
        asks: ['url', 'version', 'token?'],
      },
    ],
  },
  config,
  open: (options, { http }) =>
    createHost(options.version === 'v1' ? describeV1(options) : describeV2(options), http),
  fromPicGo,
})

/** Describes the API of lsky-org/lsky-pro 1.x: application/api/controller/Upload.php */
function describeV1({ url, token }: Options): HostDescription {
  return {
    url: `${literal(withoutSlash(url))}/api/upload`,
    headers: { token: token && '{secret:token}' },
    field: 'image',
    // The site returns 500 for a wrong token, which would otherwise be a transient failure.
    statuses: [200, 500],
    success: { at: 'code', is: [200] },
    resultUrl: 'data.url',
    errorMessage: 'msg',
    secrets: { token },
  }
}

/** Describes the API of lsky-org/lsky-pro 2.x: app/Http/Controllers/Api/V1/ImageController.php */
function describeV2({ url, token, strategyId, albumId, permission }: Options): HostDescription {
  return {
    url: `${literal(withoutSlash(url))}/api/v1/upload`,
    headers: { Accept: 'application/json', Authorization: token && 'Bearer {secret:token}' },
    fields: {
      strategy_id: strategyId?.toString(),
      album_id: albumId?.toString(),
      permission: permission && { public: '1', private: '0' }[permission],
    },
    success: { at: 'status', is: [true] },
    resultUrl: 'data.links.url',
    deleteUrl: 'data.links.delete_url',
    errorMessage: 'message',
    secrets: { token: token?.replace(/^Bearer\s+/i, '') },
  }
}

/** Translates options of PicList, which has the token of v2 with `Bearer`, and the permission as a number or as `{ value }`. */
function fromPicGo(options: Record<string, unknown>) {
  const { host, version, token, strategyId, albumId, permission } = options
  const value =
    typeof permission === 'object' && permission !== null && 'value' in permission
      ? permission.value
      : permission
  return {
    options: {
      url: readTextOption(host),
      version: readTextOption(version) === 'V2' ? 'v2' : 'v1',
      token: readTextOption(token)?.replace(/^Bearer\s+/i, ''),
      strategyId: strategyId || undefined,
      albumId: albumId || undefined,
      permission: value === 1 ? 'public' : value === 0 ? 'private' : undefined,
      keyTemplate: '{filename}{extname}',
    },
    notes: [
      'Certificates are verified. Set "caFile" if the certificate of the site is issued by your own CA.',
    ],
  }
}
