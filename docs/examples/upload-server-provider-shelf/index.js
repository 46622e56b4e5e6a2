// @ts-check

/** @type {import('upload-server/provider').Plugin} */
export default ({ defineProvider, z, secret, Problem, url }) =>
  defineProvider({
    type: 'shelf',
    config: z.object({
      address: url.prefix().describe('URL of the shelf, such as "https://shelf.example.com/pictures".'),
      token: secret().describe('Token with write access.'),
    }),
    about: {
      family: 'server',
      what: 'a shelf',
      testedAgainst: 'shelf-server.js',
      example: { pictures: { address: 'https://shelf.example.com/pictures', token: 'SHELF_TOKEN' } },
      choices: [{ label: 'Shelf', asks: ['address', 'token'] }],
    },
    open(options, { http }) {
      /**
       * @param {string} method
       * @param {string} key
       * @param {AbortSignal} signal
       * @param {Partial<import('upload-server/provider').HttpRequest>} [more]
       * @returns {Promise<string>} value of the header `Shelf`, which login pages and gateways do not send with their status 200
       */
      async function ask(method, key, signal, more) {
        const headers = { Authorization: `Bearer ${options.token}`, ...more?.headers }
        const accept = (/** @type {number} */ status) => status < 300 || status === 404
        const address = url.join(options.address, key)
        const reply = await http.send({ ...more, method, url: address, headers, accept }, signal)
        const stored = reply.headers.shelf
        if (stored !== undefined) return stored
        throw new Problem(`${options.address.split('/')[2]} returned a response that is not from a shelf`, {
          advice: 'Check "address".',
        })
      }

      return {
        async put(object, signal) {
          const stored = await ask('PUT', object.key, signal, {
            headers: { 'Content-Type': object.contentType },
            body: object,
          })
          if (stored !== object.sha256) throw new Problem('it was damaged on the way', { retryable: true })
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
      }
    },
  })
