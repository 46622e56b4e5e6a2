import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openUrl } from '../../../../src/uploader/sources/url.ts'
import { makeDirectory } from '../../../helpers/directory.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { needs } from '../../../helpers/needs.ts'
import { makeCertificate } from '../../../servers/certificate.ts'
import { serve } from '../../../uploader/sources/servers.ts'

describe('openUrl', () => {
  describe('failures', () => {
    it('trusts no self-signed certificate', async context => {
      needs(context, 'openssl', 'openssl')
      const { certFile, keyFile } = makeCertificate(await makeDirectory())
      const tls = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') }
      const server = await serve((_req, res) => res.end(), tls)
      const { signal } = new AbortController()
      const options = { addresses: 'private', timeoutMs: 20_000, signal, maxBytes: 1000 } as const
      const error = await failureOf(openUrl(new URL(`${server.origin}/a.png`), options))
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain(
        'its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT). Check the certificate',
      )
      expect(error.message).not.toMatch(/https?:\/\//)
      expect(error.message).toMatch(/^".*\.$/)
      expect(server.requests).toHaveLength(0)
    })
  })
})
