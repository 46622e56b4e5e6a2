import { describeProvider, openProvider, startCutProxy } from 'upload-server/provider-tests'
import plugin from './index.js'
import { startShelf } from './shelf-server.js'

const token = 'a-token-of-the-shelf'

describeProvider('shelf', async () => {
  const shelf = await startShelf(token)
  const proxy = await startCutProxy(shelf.port)
  const open = (port, options = {}) =>
    openProvider(plugin, { url: `http://127.0.0.1:${port}`, token, ...options })
  return {
    target: await open(shelf.port),
    async fetch({ url }) {
      const response = await fetch(url)
      if (!response.ok) throw new Error(`status ${response.status}`)
      return Buffer.from(await response.arrayBuffer())
    },
    secrets: [token, 'another-token'],
    withBadCredentials: () => open(shelf.port, { token: 'another-token' }),
    breakable: async () => ({ ...proxy, target: await open(proxy.port) }),
    forgeable: { port: shelf.port, open },
    without: { names: 'a shelf names files itself' },
    async close() {
      proxy.close()
      await shelf.close()
    },
  }
})
