import { azure } from '../../../src/providers/azure/index.ts'
import { fetchPublic, openHost } from '../../helpers/http-exchange.ts'
import { type ContractSetup, describeProvider } from '../../helpers/provider-contract.ts'
import { AZURITE_NEEDS, startAzurite } from '../../servers/azurite.ts'
import { startProxy } from '../../servers/proxy.ts'

const OTHER_KEY = Buffer.alloc(64, 'another key').toString('base64')

/** A private container whose blobs are read by signed URLs. */
async function startContract(): Promise<ContractSetup> {
  const azurite = await startAzurite()
  const proxy = await startProxy([azurite.port])
  await azurite.createContainer('pictures')
  const { account, accountKey } = azurite
  const options = { account, container: 'pictures', accountKey, endpoint: azurite.url, linkType: 'sas' }
  const openAt = (port: number) =>
    openHost(azure, { ...options, endpoint: `http://127.0.0.1:${port}/${account}` })
  return {
    target: await openHost(azure, options),
    fetch: fetchPublic,
    secrets: [accountKey, OTHER_KEY],
    withBadCredentials: () => openHost(azure, { ...options, accountKey: OTHER_KEY }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: azurite.port, open: openAt },
    async close() {
      await proxy.close()
      await azurite.close()
    },
  }
}

describeProvider('azure at azurite', startContract, AZURITE_NEEDS)
