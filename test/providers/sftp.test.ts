import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../../src/provider-tests/listen.ts'
import { sftp } from '../../src/providers/sftp/index.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { objectOf } from '../helpers/provider-contract.ts'
import { startProxy } from '../servers/proxy.ts'

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVubm9uZW5vbmVub25lbm9uZW5vbmVub25lbm9u me@example\n'
const PRIVATE_KEY = generateKeyPairSync('ed25519').privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string
const PUTTY_KEY = (version: number) =>
  `PuTTY-User-Key-File-${version}: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 2\n`

function validate(options: Record<string, unknown>): string | undefined {
  const others = { host: 'example.com', username: 'u', urlPrefix: 'https://img.example.com' }
  return sftp.validate?.(sftp.config.parse({ ...others, ...options }))
}

describe('what is no private key was refused at the first upload only', () => {
  it.each([
    [
      'a public key',
      PUBLIC_KEY,
      'It is the public key. Use the private key, whose file has the same name without',
    ],
    [
      'the characters "\\n" for line breaks',
      PRIVATE_KEY.replaceAll('\n', '\\n'),
      'It contains "\\n" as two characters.',
    ],
    ["PuTTY's format 3", PUTTY_KEY(3), 'Its PuTTY format is newer than 2. Export it with PuTTYgen'],
    ["PuTTY's format 2", PUTTY_KEY(2), undefined],
    ['a private key', PRIVATE_KEY, undefined],
  ])('%s', async (_, text, words) => {
    const path = join(await makeDirectory(), 'key')
    await writeFile(path, text)
    for (const options of [{ privateKey: text }, { privateKeyFile: path }]) {
      const [name] = Object.keys(options)
      const said = validate(options)
      if (words === undefined) expect(said).toBeUndefined()
      else expect(said).toContain(`"${name}" is not a usable private key. ${words}`)
    }
  })

  it('a file that is not there yet is looked at when the server connects', () => {
    expect(validate({ privateKeyFile: '/no/such/file' })).toBeUndefined()
  })
})

/** Begins to store an object at a server that rejects one of the writes, counted from 0, and else says that all went well. */
async function putAt(rejected?: number) {
  let writes = 0
  // ssh2 can't read 1 of 200 Ed25519 keys that it generates.
  const hostKeys = [ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).private]
  const server = new ssh2.Server({ hostKeys }, client => {
    client.on('error', () => {}).on('authentication', login => login.accept())
    client.on('session', accept =>
      accept().on('sftp', acceptSftp => {
        const session = acceptSftp()
        session.on('OPEN', id => session.handle(id, Buffer.of(0)))
        session.on('WRITE', id => session.status(id, writes++ === rejected ? 4 : 0))
        for (const name of ['CLOSE', 'RENAME', 'REMOVE'] as const)
          session.on(name, (id: number) => session.status(id, 0))
        session.on('LSTAT', id => session.status(id, 2))
      }),
    )
  })
  const proxy = await startProxy([await listen(server as never)])
  const options = { host: '127.0.0.1', port: proxy.port, username: 'u', password: 'p' }
  const config = sftp.config.parse({ ...options, urlPrefix: 'https://img.example.com' })
  const target = await sftp.open(config, { name: 'Default', warn: () => {} })
  onTestFinished(async () => {
    await target.close?.()
    await proxy.close()
    server.close()
  })
  const put = () => target.put(objectOf('a.bin', Buffer.alloc(100_000)), new AbortController().signal)
  return { proxy, put }
}

it('a write that the server rejects is not reported as stored', async () => {
  await (await putAt()).put()
  for (const rejected of [0, 1, 3])
    expect(await failureOf((await putAt(rejected)).put()), `write ${rejected} of 4`).toMatchObject({
      message: expect.stringContaining('returned 4'),
    })
})

it('a server that says nothing any more is left after a while', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { proxy, put } = await putAt()
  await put()
  proxy.silence()
  const failing = failureOf(put())
  await vi.advanceTimersByTimeAsync(60_000)
  const { retryable, message, cause } = await failing
  expect(message).toContain('lost the connection')
  expect([retryable, String(cause)]).toEqual([true, 'Error: Keepalive timeout'])
})
