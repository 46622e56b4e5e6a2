import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'

const config = z.object({
  apiKey: secret().describe('API key of the account, from api.imgbb.com.'),
  expiration: z
    .int()
    .min(60)
    .max(15_552_000)
    .optional()
    .describe('Time after which ImgBB deletes the file. Seconds, 60 to 15552000. Default: never.'),
  url: httpAddress().default('https://api.imgbb.com/1/upload').describe('URL of the upload API.'),
})

/** ImgBB. The API key is sent in the form, because URLs are logged. */
export const imgbb = defineProvider({
  type: 'imgbb',
  about: {
    family: 'host',
    what: 'ImgBB',
    testedAgainst: 'a mock of the documented API',
    example: { blog: { apiKey: 'IMGBB_KEY', expiration: 86400 } },
    choices: [{ label: 'ImgBB', asks: ['apiKey'], where: 'api.imgbb.com.' }],
  },
  config,
  open: (options, { http }) => createHost(describe(options), http),
})

/** Describes the API: api.imgbb.com */
function describe({ url, apiKey, expiration }: z.output<typeof config>): HostDescription {
  return {
    url: literal(url),
    field: 'image',
    fields: { key: '{secret:apiKey}', expiration: expiration?.toString() },
    success: { at: 'success', is: [true] },
    resultUrl: 'data.url',
    deleteUrl: 'data.delete_url',
    errorMessage: 'error.message',
    secrets: { apiKey },
  }
}
