import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { UploadError } from '../../../../src/errors.ts'
import { type OpenUrlOptions, openUrl } from '../../../../src/uploader/sources/url.ts'
import { needs } from '../../../helpers/needs.ts'
import { serve } from '../../../uploader/sources/servers.ts'

const never = new AbortController().signal
const MiB = 1024 * 1024

function open(url: string, options: Partial<OpenUrlOptions> = {}) {
  const defaults = { addresses: 'private', timeoutMs: 20_000, signal: never, maxBytes: MiB } as const
  return openUrl(new URL(url), { ...defaults, ...options })
}

async function read(url: string, options: Partial<OpenUrlOptions> = {}): Promise<Buffer> {
  return buffer((await open(url, options)).body)
}

/** What opening or reading a URL fails with. */
async function failure(url: string, options: Partial<OpenUrlOptions> = {}): Promise<UploadError> {
  const error = await read(url, options).then(
    () => new Error('It was read.'),
    (caught: unknown) => caught,
  )
  if (!(error instanceof UploadError)) throw error
  expect(error.message).not.toMatch(/https?:\/\//)
  expect(error.message).toMatch(/^".*\.$/)
  return error
}

describe('openUrl', () => {
  describe('failures', () => {
    it('trusts no self-signed certificate', async context => {
      needs(context, 'openssl', 'openssl')
      const server = await serve((_req, res) => res.end(), selfSigned())
      const error = await failure(`${server.origin}/a.png`)
      expect(error.code).toBe('source_failed')
      expect(error.message).toContain(
        'its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT). Check the certificate',
      )
      expect(server.requests).toHaveLength(0)
    })
  })
})

function selfSigned(): { key: string; cert: string } {
  const directory = mkdtempSync(join(tmpdir(), 'self-signed-'))
  try {
    const [key, cert] = [join(directory, 'key'), join(directory, 'cert')] as const
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
    execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...subject], {
      stdio: 'ignore',
    })
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
