import { secret, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { formHost } from './shared/form-host.ts'

/** ImgBB. The API key is sent in the form, because URLs are logged. */
export const imgbb = formHost({
  type: 'imgbb',
  about: {
    family: 'host',
    what: 'ImgBB',
    choices: [{ label: 'ImgBB', asks: ['apiKey'], where: 'api.imgbb.com.' }],
  },
  options: {
    apiKey: secret().describe('API key of the account, from api.imgbb.com.'),
    expiration: z
      .int()
      .min(60)
      .max(15_552_000)
      .optional()
      .describe('Time after which ImgBB deletes the file. Seconds, 60 to 15552000. Default: never.'),
    url: webUrl().default('https://api.imgbb.com/1/upload').describe('URL of the upload API.'),
  },
  form: ({ url, apiKey, expiration }) => ({
    url,
    fields: { key: apiKey, expiration },
    file: 'image',
  }),
  answer: {
    success: ['success', true],
    url: 'data.url',
    deleteUrl: 'data.delete_url',
    error: 'error.message',
  },
})
