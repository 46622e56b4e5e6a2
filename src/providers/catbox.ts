import { secret, webUrl } from '../options.ts'
import { formHost } from './shared/form-host.ts'

/** Catbox. The response is the URL, or an error message, both with status 200. */
export const catbox = formHost({
  type: 'catbox',
  about: {
    family: 'host',
    what: 'Catbox',
    choices: [{ label: 'Catbox', hint: 'needs no account', asks: ['userhash?'] }],
  },
  options: {
    userhash: secret()
      .optional()
      .describe(
        'User hash of the account, from its page "Manage Account". Files uploaded without it can\'t be deleted.',
      ),
    url: webUrl().default('https://catbox.moe/user/api.php').describe('URL of the upload API.'),
  },
  form: ({ url, userhash }) => ({
    url,
    fields: { reqtype: 'fileupload', userhash },
    file: 'fileToUpload',
  }),
  answer: { url: reply => reply.text },
})
