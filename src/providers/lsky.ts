import { membersOf } from '../members.ts'
import { secret, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { formHost } from './shared/form-host.ts'
import { withoutSlash } from './shared/public-url.ts'

const id = () => z.union([z.int(), z.string().regex(/^\d+$/)], { error: 'must be a number' }).optional()

/** A site made with Lsky Pro (the free editions). */
export const lsky = formHost({
  type: 'lsky',
  about: {
    family: 'host',
    what: 'Lsky Pro 1.x and 2.x',
    choices: [{ label: 'Lsky Pro · 兰空图床', asks: ['url', 'version', 'token?'] }],
  },
  options: {
    url: webUrl().describe('URL of the site, without /api.'),
    version: z
      .enum(['v1', 'v2'])
      .default('v2')
      .describe('API version: "v1" for Lsky 1.x, "v2" for Lsky 2.x.'),
    token: secret()
      .optional()
      .describe('Token of the account. Without it, files are uploaded as a guest if the site allows that.'),
    strategyId: id().describe('ID of the storage strategy. v2 only. Default: the strategy of the account.'),
    albumId: id().describe('ID of the album. v2 only.'),
    permission: z
      .enum(['public', 'private'])
      .optional()
      .describe('Visibility of the image in the gallery. v2 only. Default: the setting of the account.'),
  },
  // lsky-org/lsky-pro 1.x: application/api/controller/Upload.php; 2.x: app/Http/Controllers/Api/V1/ImageController.php
  form({ url, version, token, strategyId, albumId, permission }) {
    const site = withoutSlash(url)
    if (version === 'v1') return { url: `${site}/api/upload`, headers: { token }, file: 'image' }
    const bare = token?.replace(/^Bearer\s+/i, '')
    return {
      url: `${site}/api/v1/upload`,
      headers: { accept: 'application/json', authorization: bare && `Bearer ${bare}` },
      fields: {
        strategy_id: strategyId,
        album_id: albumId,
        permission: permission && { public: 1, private: 0 }[permission],
      },
      file: 'file',
    }
  },
  answer: ({ version }) =>
    version === 'v1'
      ? // The site returns 500 for a wrong token, which would otherwise be a transient failure.
        { statuses: [200, 500], success: ['code', 200], url: 'data.url', error: 'msg' }
      : {
          success: ['status', true],
          url: 'data.links.url',
          deleteUrl: 'data.links.delete_url',
          error: 'message',
        },
  // PicList has the token of v2 with `Bearer`, and the permission as a number or as `{ value }`.
  picgo(old) {
    const { strategyId, albumId, permission } = old.all
    const value = membersOf(permission)['value'] ?? permission
    old.note(
      'Certificates are verified. Set "caFile" if the certificate of the site is issued by your own CA.',
    )
    return {
      url: old.text('host'),
      version: old.text('version') === 'V2' ? 'v2' : 'v1',
      token: old.text('token')?.replace(/^Bearer\s+/i, ''),
      strategyId: strategyId || undefined,
      albumId: albumId || undefined,
      permission: value === 1 ? 'public' : value === 0 ? 'private' : undefined,
    }
  },
})
