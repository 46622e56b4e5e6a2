import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'

const config = z.object({
  userhash: secret()
    .optional()
    .describe(
      'User hash of the account, from its page "Manage Account". Files uploaded without it can\'t be deleted.',
    ),
  url: httpAddress().default('https://catbox.moe/user/api.php').describe('URL of the upload API.'),
})

/** Catbox. The response is the URL, or an error message, both with status 200. */
export const catbox = defineProvider({
  type: 'catbox',
  about: {
    family: 'host',
    what: 'Catbox',
    testedAgainst: 'a mock of the documented API',
    example: { files: { userhash: 'CATBOX_USERHASH' } },
    choices: [{ label: 'Catbox', hint: 'needs no account', asks: ['userhash?'] }],
  },
  config,
  open: (options, { http }) => createHost(describe(options), http),
})

/** Describes the API: catbox.moe/tools.php */
function describe({ url, userhash }: z.output<typeof config>): HostDescription {
  return {
    url: literal(url),
    field: 'fileToUpload',
    fields: { reqtype: 'fileupload', userhash: userhash && '{secret:userhash}' },
    resultUrl: '{response}',
    secrets: { userhash },
  }
}
