import { fileURLToPath } from 'node:url'
import { loadPlugins } from '../../src/config/plugins.ts'
import { startCutProxy } from '../../src/provider-tests/cut-proxy.ts'
import type { Provider } from '../../src/providers/contract.ts'
import { fetchPublic, NAMES_OF_ITS_OWN, openHost } from '../helpers/http-exchange.ts'
import { describeProvider } from '../helpers/provider-contract.ts'

/** What docs/contributing/write-a-provider.md begins with; `.ci/installs` tests it as a stranger would, with packages. */
const EXAMPLE = new URL('../../docs/examples/upload-server-provider-shelf/', import.meta.url)

describeProvider('the example of a plugin', async () => {
  const { startShelf } = (await import(new URL('shelf-server.js', EXAMPLE).href)) as {
    startShelf(token: string): Promise<{ port: number; close(): Promise<void> }>
  }
  const { providers } = await loadPlugins(
    [fileURLToPath(new URL('index.js', EXAMPLE))],
    '/',
    (_, message) => {
      throw new Error(message)
    },
  )
  const shelf = await startShelf('token-of-the-shelf')
  const proxy = await startCutProxy(shelf.port)
  const open = (port: number, token = 'token-of-the-shelf') =>
    openHost(providers.get('shelf') as Provider, { url: `http://127.0.0.1:${port}`, token })
  return {
    target: await open(shelf.port),
    fetch: fetchPublic,
    secrets: ['token-of-the-shelf', 'another-token'],
    withBadCredentials: () => open(shelf.port, 'another-token'),
    breakable: async () => ({ ...proxy, target: await open(proxy.port) }),
    forgeable: { port: shelf.port, open },
    without: { names: NAMES_OF_ITS_OWN },
    async close() {
      proxy.close()
      await shelf.close()
    },
  }
})
