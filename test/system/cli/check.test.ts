import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { makeCertificate } from '../../servers/certificate.ts'

it('check downloads with the certificates that the destination trusts', async context => {
  needs(context, 'openssl', 'openssl')
  const cwd = await makeDirectory()
  const { certFile, keyFile } = makeCertificate(cwd)
  let stored: Uint8Array = Buffer.alloc(0)
  const tls = { cert: await readFile(certFile), key: await readFile(keyFile) }
  const server = createServer(tls, async (req, res) => {
    const body = Buffer.concat(await req.toArray())
    if (req.method === 'GET') return res.end(stored)
    stored = body
    return res.end(`https://${req.headers.host}/a.png`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const host = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    body: 'raw',
    caFile: 'cert.pem',
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ providers: { http: { host } } }))
  const { code, stdout } = await runCli(['check'], { cwd })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('stored and downloaded') })
})
