import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'
import { withoutSlash } from './shared/public-url.ts'

const config = z.object({
  url: httpAddress().describe('URL of the site without /api. "https://freeimage.host" also works.'),
  apiKey: secret().describe('API key of the user (Settings → API), or the public API key of the site.'),
  album: z.string().min(1).optional().describe('ID of an album of the user.'),
  expiration: z
    .string()
    .regex(/^P(?=.)(\d+[YMWD])*(T(\d+[HMS])+)?$/, 'must be a duration such as "P3D" or "PT5M"')
    .optional()
    .describe(
      'Time after which the site deletes the file. ISO 8601 duration such as "P3D" (3 days). Default: never.',
    ),
})

/** A Chevereto site, API version 1 and 1.1. */
export const chevereto = defineProvider({
  type: 'chevereto',
  about: {
    family: 'host',
    what: 'Chevereto',
    testedAgainst: 'a mock of the documented API',
    example: { blog: { url: 'https://img.example.com', apiKey: 'CHEVERETO_KEY', expiration: 'P30D' } },
    choices: [
      {
        label: 'Chevereto, freeimage.host',
        asks: ['url', 'apiKey'],
        where: 'Settings → API.',
      },
    ],
  },
  config,
  open: (options, { http }) => createHost(describe(options), http),
})

/** Describes the API: v4-docs.chevereto.com/api/1/file-upload. Versions before 4 read the API key only from the form. */
function describe({ url, apiKey, album, expiration }: z.output<typeof config>): HostDescription {
  return {
    url: `${literal(withoutSlash(url))}/api/1/upload`,
    headers: { 'X-API-Key': '{secret:apiKey}' },
    field: 'source',
    fields: { key: '{secret:apiKey}', format: 'json', album_id: album && literal(album), expiration },
    success: { at: 'status_code', is: [200] },
    resultUrl: 'image.url',
    deleteUrl: 'image.delete_url',
    errorMessage: 'error.message',
    secrets: { apiKey },
  }
}
