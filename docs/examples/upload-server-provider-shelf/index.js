// @ts-check

/** @type {import('upload-server/provider').Plugin} */
export default ({ formHost, joinUrl, secret, urlPrefix }) =>
  formHost({
    type: 'shelf',
    about: {
      family: 'host',
      what: 'a shelf',
      choices: [{ label: 'Shelf', asks: ['url', 'token'] }],
    },
    options: {
      url: urlPrefix().describe('URL of the site, such as "https://shelf.example.com".'),
      token: secret().describe('Token with write access.'),
    },
    form: ({ url, token }) => ({
      url: joinUrl(url, 'api/upload'),
      headers: { authorization: `Bearer ${token}` },
      file: 'file',
    }),
    answer: {
      success: ['ok', true],
      url: 'data.url',
      deleteUrl: 'data.deleteUrl',
      error: 'message',
    },
  })
