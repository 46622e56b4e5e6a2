import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** Hands out what lies in a folder, as a visitor of the web site over it would see it. */
export interface WebFolder {
  /** Ends with a slash. */
  readonly url: string
  /** @throws Error when the status is none of success */
  fetch(stored: { url: string }): Promise<Buffer>
  close(): void
}

export async function startWebFolder(directory: string): Promise<WebFolder> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('/').slice(2).map(decodeURIComponent).join('/')
    createReadStream(join(directory, path))
      .on('error', () => response.writeHead(404).end())
      .pipe(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/web/`,
    async fetch({ url }) {
      const response = await fetch(url)
      if (!response.ok) throw new Error(`status ${response.status}`)
      return Buffer.from(await response.arrayBuffer())
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
