import { expect } from 'vitest'
import { startCutProxy } from '../../src/provider-tests/cut-proxy.ts'
import type { Provider } from '../../src/providers/contract.ts'
import type { S3Keys } from '../servers/s3-admin.ts'
import type { ContractSetup } from './provider-contract.ts'

/** A server that speaks S3, with a bucket "contract" in it. */
export interface S3Server {
  readonly port: number
  readonly url: string
  readonly owner: S3Keys
}

const deps = { name: 'Default', warn: (message: string) => expect.fail(message) }

/**
 * What the contract needs of a provider at such a server.
 *
 * @param toOptions the provider's options for the bucket, as they stand in a file
 */
export async function createS3Contract(
  provider: Provider,
  { port, url, owner }: S3Server,
  toOptions: (endpoint: string, keys: S3Keys) => Record<string, unknown>,
): Promise<ContractSetup> {
  const open = (endpoint: string, keys = owner) => {
    const config = provider.config.parse(toOptions(endpoint, keys))
    expect(provider.validate?.(config)).toBeUndefined()
    return provider.open(config, deps)
  }
  const proxies: { close(): void }[] = []
  return {
    target: await open(url),
    async fetch(stored) {
      const response = await fetch(stored.url)
      if (!response.ok) throw new Error(`status ${response.status}`)
      return Buffer.from(await response.arrayBuffer())
    },
    secrets: [owner.secretAccessKey, 'a wrong secret'],
    withBadCredentials: () => open(url, { ...owner, secretAccessKey: 'a wrong secret' }),
    forgeable: { port, open: proxyPort => open(`http://127.0.0.1:${proxyPort}`) },
    async breakable() {
      const proxy = await startCutProxy(port)
      proxies.push(proxy)
      return { ...proxy, target: await open(`http://127.0.0.1:${proxy.port}`) }
    },
    async close() {
      for (const proxy of proxies) proxy.close()
    },
  }
}
