import { readFileSync } from 'node:fs'
import { request as sendRequest } from 'node:http'
import { createServer } from 'node:https'
import { listen } from '../helpers/listen.ts'
import { makeCertificate } from './certificate.ts'

/**
 * Takes TLS connections on 127.0.0.1 and passes requests on without it, as a reverse proxy does. Needs openssl.
 *
 * @param folder where the certificate goes
 */
export async function startTlsProxy(targetPort: number, folder: string) {
  const { certFile, keyFile } = makeCertificate(folder)
  const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const server = createServer(tls, (request, response) => {
    const { method, url, headers } = request
    const options = { host: '127.0.0.1', port: targetPort, method, path: url, headers }
    const upstream = sendRequest(options, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    request.pipe(upstream)
  })
  const { port, close } = await listen(server)
  return {
    url: `https://127.0.0.1:${port}`,
    caFile: certFile,
    close,
  }
}
