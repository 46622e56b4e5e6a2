import { describe, expect, it, onTestFinished } from 'vitest'
import { ODD_NAMES } from '../../src/provider-tests/objects.ts'
import { upyun } from '../../src/providers/upyun/index.ts'
import { fetchPublic, openHost } from '../helpers/http-exchange.ts'
import { type ContractSetup, describeProvider, objectOf } from '../helpers/provider-contract.ts'
import { startProxy } from '../servers/proxy.ts'
import { startUpyun } from '../servers/upyun.ts'

async function startContract(isGuarded: boolean): Promise<ContractSetup> {
  const server = await startUpyun()
  const proxy = await startProxy([server.port])
  const { bucket, operator, password, url: endpoint, publicUrl, guardedUrl, token } = server
  const domain = isGuarded ? { urlPrefix: guardedUrl, antiLeechToken: token } : { urlPrefix: publicUrl }
  const options = { bucket, operator, password, endpoint, ...domain }
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
describeProvider('upyun at what it documents, with a token', () => startContract(true))

describe('upyun at what it documents, without a token', () => {
  it.each(ODD_NAMES)('answers with a URL that opens the file and decodes back to the key: %s', async file => {
    const { target, fetch, close } = await startContract(false)
    onTestFinished(async () => {
      await target.close?.()
      await close()
    })
    expect(target.sign).toBeUndefined()
    const stored = await target.put(
      objectOf(`a/${file}`, Buffer.from(file), 'image/png'),
      new AbortController().signal,
    )
    const { pathname, search } = new URL(stored.url)
    expect(decodeURIComponent(pathname).endsWith(`/a/${file}`)).toBe(true)
    expect(search).toBe('')
    expect((await fetch(stored)).toString()).toBe(file)
  })
})
