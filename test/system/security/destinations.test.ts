import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { destinationsAt, startWith, TYPES } from '../../helpers/destinations.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { expectFailure } from '../../helpers/expect-answer.ts'
import { list, post } from '../../helpers/form.ts'
import { needs } from '../../helpers/needs.ts'
import type { TestApp } from '../../helpers/start-app.ts'
import { makeCertificate } from '../../servers/certificate.ts'
import { serve } from '../../uploader/sources/servers.ts'

describe('a certificate', () => {
  async function startSecure(name?: string) {
    const { certFile, keyFile } = makeCertificate(await makeDirectory(), name)
    const tls = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') }
    const server = await serve((req, res) => {
      req.resume().on('end', () => res.end('{"data":{"url":"https://pictures.example/a"}}'))
    }, tls)
    return { server, certFile }
  }

  const send = async (app: TestApp, name: string) =>
    post(`${app.url}/upload?picbed=http&configName=${name}`, list('data:,hello'))

  it.for<[what: string, name?: string]>([
    ['that nobody signed'],
    ['for another name, even where it is trusted', 'DNS:other.example'],
  ])('%s is refused by every kind of destination, before a secret is sent', async ([, name], context) => {
    needs(context, 'openssl', 'openssl')
    const { server, certFile } = await startSecure(name)
    const app = await startWith(destinationsAt(server.origin, name ? { caFile: certFile } : {}))
    for (const type of TYPES) {
      const answer = await post(`${app.url}/upload?picbed=${type}`, list('data:,hello'))
      expectFailure(answer, 502, 'destination_failed')
      expect(answer.message, type).toMatch(/certificate/)
    }
    expect(server.requests).toEqual([])
  })

  it('is taken where "caFile" names it, or with "insecureTls", of which the log warns, and there alone', async context => {
    needs(context, 'openssl', 'openssl')
    const { server, certFile } = await startSecure()
    const { http } = destinationsAt(server.origin)
    const trusting = { ...http.Default, caFile: certFile }
    const careless = { ...http.Default, insecureTls: true }
    const app = await startWith({ http: { ...http, trusting, careless } })
    expect(app.server.notes).toEqual([expect.stringMatching(/careless.*insecureTls/)])
    for (const [name, status] of Object.entries({ trusting: 200, careless: 200, Default: 502 }))
      expect([name, (await send(app, name)).status]).toEqual([name, status])
  })
})
