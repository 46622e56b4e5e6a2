import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'
import { readProxy, readTextOption } from './shared/picgo-options.ts'

const config = z.object({
  clientId: secret().optional().describe('Client ID of an application, for anonymous uploads.'),
  accessToken: secret()
    .optional()
    .describe('OAuth access token, for uploads to an account. Takes precedence over "clientId".'),
  album: z
    .string()
    .min(1)
    .optional()
    .describe('ID of the album to add files to. For an anonymous album, its delete hash.'),
  url: httpAddress().default('https://api.imgur.com/3/image').describe('URL of the upload API.'),
})

/** Imgur, API version 3. */
export const imgur = defineProvider({
  type: 'imgur',
  about: {
    family: 'host',
    what: 'Imgur',
    testedAgainst: 'a mock of the documented API',
    example: {
      anonymous: { clientId: 'IMGUR_CLIENT_ID' },
      account: { accessToken: 'IMGUR_ACCESS_TOKEN', album: 'aBcDeF1' },
    },
    choices: [{ label: 'Imgur', asks: ['clientId'], where: 'Settings → Applications.' }],
  },
  config,
  validate: ({ clientId, accessToken }) =>
    (clientId ?? accessToken) ? undefined : 'Set "clientId" or "accessToken": imgur requires one of them.',
  open: (options, { http }) => createHost(describe(options), http),
  fromPicGo,
})

/** Describes the API: apidocs.imgur.com. Errors have three formats. The delete hash is enough to delete the file on the site. */
function describe({ url, clientId, accessToken, album }: z.output<typeof config>): HostDescription {
  return {
    url: literal(url),
    headers: { Authorization: accessToken ? 'Bearer {secret:accessToken}' : 'Client-ID {secret:clientId}' },
    field: 'image',
    fields: { album: album && literal(album) },
    success: { at: 'success', is: [true] },
    resultUrl: 'data.link',
    deleteUrl: 'https://imgur.com/delete/{json:data.deletehash}',
    errorMessage: ['data.error.message', 'data.error', 'errors[0].detail'],
    secrets: { clientId, accessToken },
  }
}

/** Translates options of PicList, which uses the token only with a user name, and looks up albums by their title. */
function fromPicGo({ clientId, username, accessToken: token, album, proxy }: Record<string, unknown>) {
  const notes: string[] = []
  const accessToken = readTextOption(username) && readTextOption(token)?.replace(/^Bearer\s*/, '')
  const through = readProxy(proxy, notes)
  if (accessToken && readTextOption(album))
    notes.push('"album" was not imported: it is the title of an album, but upload-server needs its ID.')
  const credentials = accessToken ? { accessToken } : { clientId: readTextOption(clientId) }
  return {
    options: { ...credentials, keyTemplate: '{filename}{extname}', ...(through && { proxy: through }) },
    notes,
  }
}
