import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { destinationsAt, startWith, TYPES } from '../../helpers/destinations.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { expectFailure } from '../../helpers/expect-answer.ts'
import { list, post } from '../../helpers/form.ts'
import { needs } from '../../helpers/needs.ts'
import { makeCertificate } from '../../servers/certificate.ts'
import { serve } from '../../uploader/sources/servers.ts'

describe('a certificate that nobody signed', () => {
  async function startSecure() {
    const { certFile, keyFile } = makeCertificate(await makeDirectory())
    const tls = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') }
    const server = await serve((req, res) => {
      req.resume().on('end', () => res.end('{"data":{"url":"https://pictures.example/a"}}'))
    }, tls)
    return { server, certFile }
  }

  it('is refused by every kind of destination, before a secret is sent', async context => {
    needs(context, 'openssl', 'openssl')
    const { server } = await startSecure()
    const app = await startWith(destinationsAt(server.origin))
    for (const type of TYPES) {
      const answer = await post(`${app.url}/upload?picbed=${type}`, list('data:,hello'))
      expectFailure(answer, 502, 'destination_failed')
      expect(answer.message, type).toMatch(/certificate/)
    }
    expect(server.requests).toEqual([])
  })

  it('is taken where "caFile" names it, and there alone', async context => {
    needs(context, 'openssl', 'openssl')
    const { server, certFile } = await startSecure()
    const { http } = destinationsAt(server.origin)
    const app = await startWith({ http: { ...http, trusting: { ...http.Default, caFile: certFile } } })
    const send = (name: string) =>
      post(`${app.url}/upload?picbed=http&configName=${name}`, list('data:,hello'))
    expect((await send('trusting')).status).toBe(200)
    expect((await send('Default')).status).toBe(502)
  })

  it('is taken with "insecureTls", for that destination alone, and the log warns at the start', async context => {
    needs(context, 'openssl', 'openssl')
    const { server } = await startSecure()
    const { http } = destinationsAt(server.origin)
    const app = await startWith({ http: { ...http, careless: { ...http.Default, insecureTls: true } } })
    expect(app.server.notes).toEqual([expect.stringMatching(/careless.*insecureTls/)])
    const send = (name: string) =>
      post(`${app.url}/upload?picbed=http&configName=${name}`, list('data:,hello'))
    expect((await send('careless')).status).toBe(200)
    expect((await send('Default')).status).toBe(502)
  })

  it('is refused for another name, even where it is trusted', async context => {
    needs(context, 'openssl', 'openssl')
    const folder = await makeDirectory()
    const { certFile, keyFile } = makeCertificate(folder, 'DNS:other.example')
    const tls = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(join(folder, 'cert.pem'), 'utf8') }
    const server = await serve((_req, res) => res.end('{}'), tls)
    const app = await startWith(destinationsAt(server.origin, { caFile: certFile }))
    for (const type of TYPES)
      expect((await post(`${app.url}/upload?picbed=${type}`, list('data:,hello'))).status).toBe(502)
    expect(server.requests).toEqual([])
  })
})
