import { secret, text, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { formHost } from './shared/form-host.ts'
import { withoutSlash } from './shared/public-url.ts'

/** A Chevereto site, API version 1 and 1.1. */
export const chevereto = formHost({
  type: 'chevereto',
  about: {
    family: 'host',
    what: 'Chevereto',
    choices: [{ label: 'Chevereto, freeimage.host', asks: ['url', 'apiKey'], where: 'Settings → API.' }],
  },
  options: {
    url: webUrl().describe('URL of the site without /api. "https://freeimage.host" also works.'),
    apiKey: secret().describe('API key of the user (Settings → API), or the public API key of the site.'),
    album: text().optional().describe('ID of an album of the user.'),
    expiration: z
      .string()
      .regex(/^P(?=.)(\d+[YMWD])*(T(\d+[HMS])+)?$/, 'must be a duration such as "P3D" or "PT5M"')
      .optional()
      .describe(
        'Time after which the site deletes the file. ISO 8601 duration such as "P3D" (3 days). Default: never.',
      ),
  },
  // Versions before 4 read the API key only from the form.
  form: ({ url, apiKey, album, expiration }) => ({
    url: `${withoutSlash(url)}/api/1/upload`,
    headers: { 'x-api-key': apiKey },
    fields: { key: apiKey, format: 'json', album_id: album, expiration },
    file: 'source',
  }),
  answer: {
    success: ['status_code', 200],
    url: 'image.url',
    deleteUrl: 'image.delete_url',
    error: 'error.message',
  },
})
