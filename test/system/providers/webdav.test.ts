import { readdir } from 'node:fs/promises'
import { expect } from 'vitest'
import { webdav } from '../../../src/providers/webdav/index.ts'
import { fetchPublic, openHost } from '../../helpers/http-exchange.ts'
import { type ContractSetup, describeProvider } from '../../helpers/provider-contract.ts'
import { APACHE_NEEDS, startApacheDav } from '../../servers/apache-dav.ts'
import type { DavServer } from '../../servers/dav-server.ts'
import { NGINX_DAV_NEEDS, startNginxDav } from '../../servers/nginx-dav.ts'
import { startProxy } from '../../servers/proxy.ts'

type Options = Record<string, unknown>

async function startContract(server: DavServer, more: Options = {}): Promise<ContractSetup> {
  const proxy = await startProxy([server.port])
  const { url, username, password } = server
  const options = { url, username, password, directory: 'bilder ä/#1', ...more }
  const openAt = (port: number) => openHost(webdav, { ...options, url: `http://127.0.0.1:${port}/dav` })
  return {
    target: await openHost(webdav, options),
    fetch: fetchPublic,
    secrets: [password, 'wrong-password'],
    withBadCredentials: () => openHost(webdav, { ...options, password: 'wrong-password' }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: server.port, open: openAt },
    async close() {
      await proxy.close()
      const files = await readdir(server.directory, { recursive: true })
      await server.close()
      // A forged response to a removal may leave a temporary file behind.
      const left = files.filter(file => file.includes('.upload-server-') && !file.includes('/forged/'))
      expect(left).toEqual([])
    },
  }
}

describeProvider(
  'webdav at Apache with a Digest login',
  async () => startContract(await startApacheDav('Digest'), { authType: 'digest' }),
  APACHE_NEEDS,
)
describeProvider(
  'webdav at nginx without PROPFIND and temporary names',
  async () => startContract(await startNginxDav({ extended: false }), { atomic: false }),
  NGINX_DAV_NEEDS,
)
