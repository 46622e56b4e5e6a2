import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'

/**
 * Starts a server to test against. It keeps files in memory, and serves them to every client.
 *
 * @param {string} token clients need it to upload
 */
export async function startShelf(token) {
  /** @type {Map<string, Uint8Array>} */
  const files = new Map()

  const server = createServer(async (request, response) => {
    const { method, headers, url = '/' } = request
    if (method === 'GET') {
      const file = files.get(url.replace('/delete/', '/pictures/'))
      if (url.startsWith('/delete/')) files.delete(url.replace('/delete/', '/pictures/'))
      return response.writeHead(file ? 200 : 404).end(file)
    }
    /** @type {(status: number, body: object) => void} */
    const reply = (status, body) => response.writeHead(status).end(JSON.stringify(body))
    if (headers.authorization !== `Bearer ${token}`)
      return reply(401, { ok: false, message: 'the token is invalid' })
    const file = await readFile(request).catch(() => undefined)
    if (!file) return response.destroy() // the client disconnected during the upload
    const id = randomUUID()
    files.set(`/pictures/${id}`, file)
    const base = `http://${headers.host}`
    const data = { url: `${base}/pictures/${id}`, deleteUrl: `${base}/delete/${id}` }
    return reply(200, { ok: true, data })
  })

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    port,
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** @param {import('node:http').IncomingMessage} request */
async function readFile(request) {
  const type = request.headers['content-type'] ?? ''
  const body = /** @type {ReadableStream<Uint8Array>} */ (Readable.toWeb(request))
  const file = (await new Response(body, { headers: { 'content-type': type } }).formData()).get('file')
  return file instanceof Blob ? new Uint8Array(await file.arrayBuffer()) : undefined
}
