import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'
import { readTextOption } from './shared/picgo-options.ts'

const config = z.object({
  token: secret().describe('API key of the account. At S.EE: dashboard, Developers.'),
  domain: z.string().min(1).optional().describe('Domain of the short link. S.EE only.'),
  url: httpAddress()
    .default('https://s.ee/api/v1/file/upload')
    .describe('URL of the upload API. Servers with the former SM.MS API use the path /api/v2/upload.'),
})

/** S.EE, the successor of SM.MS, and servers with version 2 of the former SM.MS API. */
export const smms = defineProvider({
  type: 'smms',
  about: {
    family: 'host',
    what: 'S.EE and the former SM.MS',
    testedAgainst: 'a mock of the documented API',
    example: { blog: { token: 'SEE_API_KEY' } },
    choices: [
      {
        label: 'S.EE, formerly SM.MS',
        asks: ['token'],
        where: 'the dashboard, Developers.',
      },
    ],
  },
  config,
  open: (options, { http }) => createHost(describe(options), http),
  fromPicGo,
})

/**
 * Describes the API: s.ee/docs/developers/smms-compatibility. For an image that already exists, the former API returns the code
 * `image_repeated`, no success, and the URL in `images`.
 */
function describe({ url, token, domain }: z.output<typeof config>): HostDescription {
  return {
    url: literal(url),
    headers: { Authorization: '{secret:token}' },
    field: 'smfile',
    fields: { domain: domain && literal(domain) },
    resultUrl: ['data.url', 'images'],
    deleteUrl: 'data.delete',
    errorMessage: ['message', 'error'],
    secrets: { token },
  }
}

/** Translates options of SM.MS, which is now S.EE. A backup domain is a host of the former API. */
function fromPicGo({ token, backupDomain }: Record<string, unknown>) {
  const backup = readTextOption(backupDomain)
  const url = backup && `https://${backup.replace(/^https?:\/\/|(?<!\/)\/+$/g, '')}/api/v2/upload`
  const notes = backup
    ? []
    : ['SM.MS is now S.EE, so files are uploaded to s.ee. Set "token" to an API key of S.EE.']
  return {
    options: { token: readTextOption(token), ...(url && { url }), keyTemplate: '{filename}{extname}' },
    notes,
  }
}
