// @ts-check

/** @type {import('upload-server/provider').Plugin} */
export default ({ defineProvider, z, secret, UploadError, http, url, body }) =>
  defineProvider({
    type: 'shelf',
    config: z.object({
      address: url.prefix().describe('Address of the shelf, such as https://shelf.example.com/pictures.'),
      token: secret().describe('Token that may write there.'),
      ...http.options,
    }),
    about: {
      family: 'server',
      what: 'a shelf',
      testedAgainst: 'shelf-server.js',
      example: { pictures: { address: 'https://shelf.example.com/pictures', token: 'SHELF_TOKEN' } },
      choices: [{ label: 'Shelf', asks: ['address', 'token'] }],
    },
    open(options, deps) {
      const client = http.createClient(options, deps)

      /**
       * @param {string} method
       * @param {string} key
       * @param {AbortSignal} signal
       * @param {Partial<import('upload-server/provider').HttpRequest>} [more]
       * @returns {Promise<string>} what the shelf says: login pages and gateways answer 200 as well, but not in its words
       */
      async function ask(method, key, signal, more) {
        const headers = { Authorization: `Bearer ${options.token}`, ...more?.headers }
        const accept = (/** @type {number} */ status) => status < 300 || status === 404
        const address = url.join(options.address, key)
        const reply = await client.send({ ...more, method, url: address, headers, accept }, signal)
        const said = reply.headers.shelf
        if (said !== undefined) return said
        throw new UploadError(
          'delivery_failed',
          `${options.address.split('/')[2]} does not answer as a shelf.`,
        )
      }

      return {
        async put(object, signal) {
          const said = await ask('PUT', object.key, signal, {
            headers: { 'Content-Type': object.contentType, 'Content-Length': String(object.size) },
            body: signal => body.lend(object, signal),
          })
          if (said !== object.sha256)
            throw new UploadError('delivery_failed', `"${object.key}" arrived damaged.`, { retryable: true })
          return { url: url.join(options.address, object.key) }
        },
        async exists(key, signal) {
          return (await ask('HEAD', key, signal)) !== 'nothing'
        },
        async remove(key, signal) {
          await ask('DELETE', key, signal)
        },
        async check(signal) {
          await ask('HEAD', 'upload-server-check', signal)
        },
        async close() {
          client.close()
        },
      }
    },
  })
