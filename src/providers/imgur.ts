import { secret, text, webUrl } from '../options.ts'
import { formHost, valueAt } from './shared/form-host.ts'

/** Imgur, API version 3. */
export const imgur = formHost({
  type: 'imgur',
  about: {
    family: 'host',
    what: 'Imgur',
    choices: [{ label: 'Imgur', asks: ['clientId'], where: 'Settings → Applications.' }],
  },
  options: {
    clientId: secret().optional().describe('Client ID of an application, for anonymous uploads.'),
    accessToken: secret()
      .optional()
      .describe('OAuth access token, for uploads to an account. Takes precedence over "clientId".'),
    album: text()
      .optional()
      .describe('ID of the album to add files to. For an anonymous album, its delete hash.'),
    url: webUrl().default('https://api.imgur.com/3/image').describe('URL of the upload API.'),
  },
  validate: ({ clientId, accessToken }) =>
    (clientId ?? accessToken) ? undefined : 'Set "clientId" or "accessToken": imgur requires one of them.',
  form: ({ url, clientId, accessToken, album }) => ({
    url,
    headers: { authorization: accessToken ? `Bearer ${accessToken}` : `Client-ID ${clientId}` },
    fields: { album },
    file: 'image',
  }),
  // Errors have three formats. The delete hash is enough to delete the file on the site.
  answer: {
    success: ['success', true],
    url: 'data.link',
    deleteUrl(reply) {
      const hash = valueAt(reply, 'data.deletehash')
      return hash && `https://imgur.com/delete/${hash}`
    },
    error: ['data.error.message', 'data.error', 'errors[0].detail'],
  },
  // PicList uses the token only with a user name, and looks up albums by their title.
  picgo(old) {
    const accessToken = old.text('username') && old.text('accessToken')?.replace(/^Bearer\s*/, '')
    if (accessToken && old.text('album'))
      old.note('"album" was not imported: it is the title of an album, but upload-server needs its ID.')
    return {
      ...(accessToken ? { accessToken } : { clientId: old.text('clientId') }),
      proxy: old.proxy(),
    }
  },
})
