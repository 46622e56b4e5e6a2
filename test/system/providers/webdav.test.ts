import { readdir } from 'node:fs/promises'
import { expect } from 'vitest'
import { webdav } from '../../../src/providers/webdav/index.ts'
import { contractAt, describeProvider } from '../../helpers/provider-contract.ts'
import { type Options, openTarget } from '../../helpers/target.ts'
import { APACHE_NEEDS, startApacheDav } from '../../servers/apache-dav.ts'
import type { DavServer } from '../../servers/dav-server.ts'
import { NGINX_DAV_NEEDS, startNginxDav } from '../../servers/nginx-dav.ts'

async function startContract(server: DavServer, more: Options) {
  const { port, username, password, directory } = server
  const openAt = (port: number, others: Options = {}) => {
    const options = { username, password, directory: 'bilder ä/#1', ...more, ...others }
    return openTarget(webdav, { url: `http://127.0.0.1:${port}/dav`, ...options })
  }
  const close = async () => {
    const files = await readdir(directory, { recursive: true })
    await server.close()
    // A forged response to a removal may leave a temporary file behind.
    const left = files.filter(file => file.includes('.upload-server-') && !file.includes('/forged/'))
    expect(left).toEqual([])
  }
  const bad = { password: 'wrong-password' }
  return contractAt({ port, close }, openAt, { bad, secrets: [password, bad.password] })
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
