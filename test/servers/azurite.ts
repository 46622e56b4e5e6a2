import { createHmac } from 'node:crypto'
import { signRequest } from '../../src/providers/azure/sign.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startDaemon } from './daemon.ts'

/** Too large to be installed with everything else: `npm install --prefix /opt/azurite azurite@3.35.0`. */
const PROGRAM = '/opt/azurite/node_modules/.bin/azurite-blob'

/** For `needs`. */
export const AZURITE_NEEDS = [[PROGRAM, 'npm install --prefix /opt/azurite azurite@3.35.0']] as const

export interface Azurite {
  readonly port: number
  readonly account: string
  readonly accountKey: string
  /** Address of the blob service. */
  readonly url: string
  /** @param access what everybody may do with it */
  createContainer(name: string, access?: 'blob'): Promise<void>
  /** A service SAS for a container, as somebody with the key makes it. */
  createSas(container: string, permissions: string, expires?: Date): string
  /** A request signed with the key of the account. */
  send(method: string, path: string, headers?: Record<string, string>): Promise<Response>
  close(): Promise<void>
}

/** Starts azurite's blob service on 127.0.0.1. */
export async function startAzurite(): Promise<Azurite> {
  const port = await findFreePorts()
  const account = 'devstoreaccount1'
  // Published by Microsoft: everybody has it.
  const accountKey =
    'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
  // In a file it truncates what a request that is aborted has written, while it still writes, and loses other blobs in that.
  const args = ['--inMemoryPersistence', '--blobHost', '127.0.0.1', '--blobPort', String(port), '--silent']
  const daemon = await startDaemon(PROGRAM, [...args, '--disableTelemetry'], { port })
  const url = `http://127.0.0.1:${port}/${account}`

  async function send(method: string, path: string, headers: Record<string, string> = {}): Promise<Response> {
    const target = new URL(url + path)
    const all = { ...headers, 'x-ms-version': '2021-12-02', 'x-ms-date': new Date().toUTCString() }
    const authorization = signRequest(method, target, all, { account, key: accountKey })
    const response = await fetch(target, { method, headers: { ...all, authorization } })
    if (response.ok) return response
    throw new Error(`azurite answered ${response.status}: ${await response.text()}`)
  }

  return {
    port,
    account,
    accountKey,
    url,
    send,
    createSas: (container, permissions, expires = new Date(Date.now() + 3_600_000)) => {
      const [se, sv, sr] = [expires.toISOString(), '2020-12-06', 'c']
      const fields = [permissions, '', se, `/blob/${account}/${container}`, '', '', '', sv, sr]
      const text = [...fields, ...Array(7).fill('')].join('\n')
      const sig = createHmac('sha256', Buffer.from(accountKey, 'base64')).update(text).digest('base64')
      return new URLSearchParams({ sv, sr, sp: permissions, se, sig }).toString()
    },
    async createContainer(name, access) {
      const headers = access && { 'x-ms-blob-public-access': access }
      await send('PUT', `/${name}?restype=container`, headers)
    },
    close: () => daemon.stop(),
  }
}
