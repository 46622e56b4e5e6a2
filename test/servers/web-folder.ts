import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { listen } from '../helpers/listen.ts'

/** Hands out what lies in a folder, as a visitor of the web site over it would see it. */
export async function startWebFolder(directory: string) {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('/').slice(2).map(decodeURIComponent).join('/')
    createReadStream(join(directory, path))
      .on('error', () => response.writeHead(404).end())
      .pipe(response)
  })
  const { url, close } = await listen(server)
  return {
    url: `${url}/web/`,
    close,
    /** @throws Error when the status is none of success */
    async fetch({ url }: { readonly url: string }) {
      const response = await fetch(url)
      if (!response.ok) throw new Error(`status ${response.status}`)
      return Buffer.from(await response.arrayBuffer())
    },
  }
}
