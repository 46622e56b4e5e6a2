import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Outgoing } from '../../../src/http/proxy/outgoing.ts'
import { command } from '../../../src/providers/command/index.ts'
import type { Target } from '../../../src/providers/contract.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs, needsAll } from '../../helpers/needs.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { OPENSSH_NEEDS, startOpenSsh } from '../../servers/openssh.ts'

const never = () => new AbortController().signal
const PICTURE = randomBytes(3000)

function open(options: object, outgoing?: Outgoing): Target {
  const config = command.config.parse(options)
  expect(command.validate?.(config)).toBeUndefined()
  return command.open(config, { name: 'Default', outgoing, warn: message => expect.fail(message) }) as Target
}

const put = (target: Target, key = 'a/b.png', bytes: Buffer = PICTURE) =>
  target.put(objectOf(key, bytes, 'image/png'), never())

describe('a recipe', () => {
  it('with rclone stores, finds and removes', async context => {
    needs(context, 'rclone', 'rclone')
    const folder = await makeDirectory()
    const at = `:local:${folder}/{key}`
    const target = open({
      command: ['rclone', 'rcat', at],
      url: 'https://img.example.com/{key}',
      remove: ['rclone', 'deletefile', at],
    })
    expect(await put(target, 'a b/ü.png')).toEqual({ url: 'https://img.example.com/a%20b/%C3%BC.png' })
    expect((await readFile(join(folder, 'a b/ü.png'))).equals(PICTURE)).toBe(true)
    await target.remove?.('a b/ü.png', never())
    expect(readdirSync(join(folder, 'a b'))).toEqual([])
  })

  it('with scp stores at OpenSSH', async context => {
    needsAll(context, OPENSSH_NEEDS)
    needs(context, 'scp', 'openssh-client')
    const server = await startOpenSsh()
    context.onTestFinished(() => server.close())
    const known = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null']
    const login = ['-P', String(server.port), '-i', server.keyFile]
    const target = open({
      command: ['scp', '-q', '-B', ...known, ...login, '{file}', `${server.username}@127.0.0.1:{sha256}`],
      url: 'https://www.example.com/img/{sha256}',
    })
    const { url } = await put(target)
    expect(
      (await readFile(join(server.directory, url.slice(url.lastIndexOf('/') + 1)))).equals(PICTURE),
    ).toBe(true)
  })
})
