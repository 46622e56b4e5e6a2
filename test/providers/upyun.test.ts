import { upyun } from '../../src/providers/upyun/index.ts'
import { fetchPublic, openHost } from '../helpers/http-exchange.ts'
import { type ContractSetup, describeProvider } from '../helpers/provider-contract.ts'
import { startProxy } from '../servers/proxy.ts'
import { startUpyun } from '../servers/upyun.ts'

async function startContract(): Promise<ContractSetup> {
  const server = await startUpyun()
  const proxy = await startProxy([server.port])
  const { bucket, operator, password, url: endpoint, guardedUrl, token } = server
  const options = { bucket, operator, password, endpoint, urlPrefix: guardedUrl, antiLeechToken: token }
  const openAt = (port: number) => openHost(upyun, { ...options, endpoint: `http://127.0.0.1:${port}` })
  return {
    target: await openHost(upyun, options),
    fetch: fetchPublic,
    secrets: [password, token, 'wrong-password'],
    withBadCredentials: () => openHost(upyun, { ...options, password: 'wrong-password' }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: server.port, open: openAt },
    async close() {
      await proxy.close()
      await server.close()
    },
  }
}

// With a token there are also signed links.
describeProvider('upyun at what it documents, with a token', startContract)
