import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sftp } from '../../src/providers/sftp/index.ts'
import { makeDirectory } from '../helpers/directory.ts'

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
