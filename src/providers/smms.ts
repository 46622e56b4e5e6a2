import { secret, text, webUrl } from '../options.ts'
import { formHost } from './shared/form-host.ts'

/** S.EE, the successor of SM.MS, and servers with version 2 of the former SM.MS API. */
export const smms = formHost({
  type: 'smms',
  about: {
    family: 'host',
    what: 'S.EE and the former SM.MS',
    choices: [{ label: 'S.EE, formerly SM.MS', asks: ['token'], where: 'the dashboard, Developers.' }],
  },
  options: {
    token: secret().describe('API key of the account. At S.EE: dashboard, Developers.'),
    domain: text().optional().describe('Domain of the short link. S.EE only.'),
    url: webUrl()
      .default('https://s.ee/api/v1/file/upload')
      .describe('URL of the upload API. Servers with the former SM.MS API use the path /api/v2/upload.'),
  },
  form: ({ url, token, domain }) => ({
    url,
    headers: { authorization: token },
    fields: { domain },
    file: 'smfile',
  }),
  // For an image that already exists, the former API returns no success, but the URL in `images`.
  answer: { url: ['data.url', 'images'], deleteUrl: 'data.delete', error: ['message', 'error'] },
  // SM.MS is now S.EE. A backup domain is a host of the former API.
  picgo(old) {
    const backup = old.text('backupDomain')?.replace(/^https?:\/\/|(?<!\/)\/+$/g, '')
    if (!backup)
      old.note('SM.MS is now S.EE, so files are uploaded to s.ee. Set "token" to an API key of S.EE.')
    return {
      token: old.text('token'),
      url: backup && `https://${backup}/api/v2/upload`,
    }
  },
})
