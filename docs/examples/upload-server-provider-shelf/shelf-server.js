import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/**
 * Starts a server to test against. It stores files in a temporary directory, which it deletes when it closes, and serves them to
 * every client. The response header `Shelf` is the SHA-256 of the stored file, or `nothing`.
 *
 * @param {string} token clients need it to write
 */
export async function startShelf(token) {
  const folder = await mkdtemp(join(tmpdir(), 'shelf-'))
  /** @type {Map<string, { at: string, sha256: string }>} */
  const files = new Map()

  const server = createServer(async (request, response) => {
    const path = request.url ?? '/'
    const { method, headers } = request
    if (method !== 'GET' && headers.authorization !== `Bearer ${token}`) return response.writeHead(401).end()
    if (method === 'PUT') {
      const file = await take(request).catch(() => undefined)
      if (!file) return response.destroy() // the client disconnected during the upload
      files.set(path, file)
      return response.writeHead(201, { Shelf: file.sha256 }).end()
    }
    if (method === 'DELETE') files.delete(path)
    const file = files.get(path)
    if (!file) return response.writeHead(method === 'DELETE' ? 204 : 404, { Shelf: 'nothing' }).end()
    response.writeHead(200, { Shelf: file.sha256 })
    if (method === 'HEAD') response.end()
    else await pipeline(createReadStream(file.at), response)
  })

  /** @param {import('node:http').IncomingMessage} request */
  async function take(request) {
    const at = join(folder, randomUUID())
    const hash = createHash('sha256')
    request.on('data', chunk => hash.update(chunk))
    await pipeline(request, createWriteStream(at))
    return { at, sha256: hash.digest('hex') }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    port,
    async close() {
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true })
    },
  }
}
