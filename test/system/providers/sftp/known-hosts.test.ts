import { execFileSync } from 'node:child_process'
import { open, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, type TestContext } from 'vitest'
import { withoutStrayErrors } from '../../../../src/provider-tests/expect.ts'
import type { KnownHosts } from '../../../../src/providers/contract.ts'
import { createHostKeys } from '../../../../src/providers/sftp/host-keys.ts'
import { makeDirectory } from '../../../helpers/directory.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { listen } from '../../../helpers/listen.ts'
import { leaveOutOnWindows, needs } from '../../../helpers/needs.ts'
import { put } from '../../../helpers/target.ts'
import { makeKey } from '../../../servers/openssh.ts'
import { startSsh2 } from '../../../servers/ssh2.ts'
import { openSftp } from './open-sftp.ts'

const LOGIN = { username: 'u', password: 'p' }

/** Host keys as a file of known ones has them: kind and Base64. */
interface HostKey {
  readonly path: string
  readonly line: string
  readonly blob: Buffer
}

async function newKey(directory: string, name: string, kind?: readonly string[]): Promise<HostKey> {
  const path = join(directory, name)
  makeKey(path, '', kind)
  const [type, base64 = ''] = (await readFile(`${path}.pub`, 'utf8')).split(' ')
  return { path, line: `${type} ${base64}`, blob: Buffer.from(base64, 'base64') }
}

describe('a file of known hosts', () => {
  let keys: readonly [own: HostKey, other: HostKey] | undefined

  /** Made once: each takes a process. */
  async function keysFor(context: TestContext) {
    needs(context, 'ssh-keygen', 'openssh-client')
    const directory = await makeDirectory()
    keys ??= [await newKey(directory, 'own'), await newKey(directory, 'other')]
    return keys
  }

  /** What is made of the key `own` of img.example.com, port 22 or 2222. */
  async function judge(own: HostKey, text: string, port = 22) {
    const path = join(await makeDirectory(), 'known_hosts')
    await writeFile(path, text)
    const files = { kept: `${path}.kept`, others: [{ path, words: 'the file' }] }
    const server = { host: 'img.example.com', port, server: 'the server', warn: () => {} }
    return createHostKeys({ ...server, pinned: [], files })
      .judge(own.blob)
      .catch(String)
  }

  it.for<[string, (own: string, other: string) => string, number, string]>([
    ['its hostname', key => `img.example.com ${key} comment`, 22, 'trusted'],
    ['its name among others, in capitals', key => `a,IMG.example.com ${key}`, 22, 'trusted'],
    ['a pattern', key => `*.example.c?m ${key}`, 22, 'trusted'],
    ['a pattern that excludes it', key => `*.example.com,!img.* ${key}`, 22, 'unknown'],
    ['its port', key => `[img.example.com]:2222 ${key}`, 2222, 'trusted'],
    ['another port', key => `[img.example.com]:2222 ${key}`, 22, 'unknown'],
    ['no port', key => `img.example.com ${key}`, 2222, 'unknown'],
    ['both keys', (key, old) => `img.example.com ${old}\nimg.example.com ${key}`, 22, 'trusted'],
    ['a remark', key => `# img.example.com ${key}\n\n`, 22, 'unknown'],
    ['a certificate', key => `@cert-authority * ${key}`, 22, 'unknown'],
    ['another key', (_, old) => `\nimg.example.com ${old}`, 22, 'but line 2 of the file has a different one'],
    ['that it is revoked', key => `@revoked * ${key}`, 22, 'which is revoked by line 1 of the file'],
    ['nothing that can be read', () => 'img.example.com\n|1|x|y\n|1| |\n@revoked', 22, 'unknown'],
  ])('with %s', async ([_, write, port, expected], context) => {
    const [own, other] = await keysFor(context)
    expect(await judge(own, write(own.line, other.line), port)).toContain(expected)
  })

  it('whose names ssh-keygen has hashed', async context => {
    const [own, other] = await keysFor(context)
    const path = join(await makeDirectory(), 'known_hosts')
    await writeFile(path, `[img.example.com]:2222 ${own.line}\nother.example.com ${other.line}\n`)
    execFileSync('ssh-keygen', ['-q', '-H', '-f', path], { stdio: 'ignore' })
    const text = await readFile(path, 'utf8')
    expect(text).not.toContain('img.example.com')
    expect(await judge(own, text, 2222)).toBe('trusted')
    expect(await judge(own, text)).toBe('unknown')
  })
})

describe('the host key of a server', () => {
  /** A server with these keys, which lets nobody in. */
  const serve = async (...keys: HostKey[]) =>
    startSsh2(
      client => client.on('authentication', context => context.reject()),
      await Promise.all(keys.map(({ path }) => readFile(path))),
    )

  async function meet(port: number, knownHosts: KnownHosts, warned: string[] = []) {
    const warn = (message: string) => void warned.push(message)
    const target = await openSftp({ port, ...LOGIN }, { warn, knownHosts })
    return target.findUnknownHost?.(AbortSignal.timeout(10_000))
  }

  it('is met, kept for its owner alone, and known from then on', async context => {
    needs(context, 'ssh-keygen', 'openssh-client')
    const directory = await makeDirectory()
    const key = await newKey(directory, 'key')
    const port = await serve(key)
    const kept = join(directory, 'data', 'known_hosts')
    const warned: string[] = []
    const stranger = await meet(port, { kept, others: [] }, warned)
    expect(stranger?.shown).toMatch(/^"sftp\/Default" .* presented the host key ssh-ed25519 SHA256:/)
    expect(warned).toEqual([])
    await stranger?.trust()
    expect(warned.join()).toContain('which was unknown. It is trusted from now on')
    expect(await readFile(kept, 'utf8')).toBe(`[127.0.0.1]:${port} ${key.line}\n`)
    expect((await stat(kept)).mode & 0o777).toBe(0o600)
    expect(await meet(port, { kept, others: [] })).toBeUndefined()
    // What is kept is what OpenSSH would keep.
    const found = execFileSync('ssh-keygen', ['-F', `[127.0.0.1]:${port}`, '-f', kept], { encoding: 'utf8' })
    expect(found).toContain(key.line)
  })

  it('is asked for in the kind that is known, where it has several', async context => {
    needs(context, 'ssh-keygen', 'openssh-client')
    const directory = await makeDirectory()
    const rsa = await newKey(directory, 'rsa', ['-t', 'rsa', '-b', '2048'])
    const port = await serve(await newKey(directory, 'ed'), rsa)
    const path = join(directory, 'known_hosts')
    await writeFile(path, `[127.0.0.1]:${port} ${rsa.line}\n`)
    const kept = join(directory, 'kept')
    expect((await meet(port, { kept, others: [] }))?.shown).toContain('ssh-ed25519')
    const knownHosts = { kept, others: [{ path, words: 'the file' }] }
    expect(await meet(port, knownHosts)).toBeUndefined()
    const target = await openSftp({ port, ...LOGIN }, { warn: () => {}, knownHosts })
    const storing = put(target, 'a.bin', 'a', AbortSignal.timeout(20_000))
    expect((await failureOf(storing)).message).toContain('rejected the login')
  })

  it('is forgotten with the process where the data folder takes no file', async context => {
    needs(context, 'ssh-keygen', 'openssh-client')
    const directory = await makeDirectory()
    const key = await newKey(directory, 'key')
    const port = await serve(key)
    const warned: string[] = []
    await (await meet(port, { kept: join(key.path, 'below-a-file'), others: [] }, warned))?.trust()
    expect(warned.join('\n')).toMatch(
      /can't be saved in the data folder \(E\w+\).*\n.*until this process ends/,
    )
  })
})

it('a server that refuses connections while known_hosts is read ended the process', async context => {
  leaveOutOnWindows(context, 'it has no named pipes')
  const directory = await makeDirectory()
  const path = join(directory, 'slow')
  execFileSync('mkfifo', [path])
  const { port, close } = await listen(createServer())
  await close()
  const knownHosts = { kept: join(directory, 'kept'), others: [{ path, words: 'the file' }] }
  const target = await openSftp({ port, ...LOGIN }, { warn: () => {}, knownHosts })
  await withoutStrayErrors(async () => {
    const storing = failureOf(put(target, 'a.bin', 'a', AbortSignal.timeout(20_000)))
    // Opened for writing once somebody reads.
    const pipe = await open(path, 'w')
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    await pipe.close()
    expect((await storing).message).toContain('it refuses connections')
  })
})

it('a server that speaks no SFTP in its channel ended the process', async () => {
  const port = await startSsh2(client => {
    client.on('authentication', login => login.accept())
    client.on('session', accept =>
      accept().on('subsystem', acceptChannel => {
        const channel = acceptChannel()
        // Version 3 of the protocol, and to whatever follows a packet of no known type.
        channel.once('data', () => channel.write(Buffer.from('000000050200000003', 'hex')))
        channel.once('data', () => channel.on('data', () => channel.write(Buffer.from('00000001fa', 'hex'))))
      }),
    )
  })
  const target = await openSftp({ port, ...LOGIN }, { warn: () => {} })
  await withoutStrayErrors(async () => {
    const storing = put(target, 'a.bin', 'a', AbortSignal.timeout(20_000))
    expect((await failureOf(storing)).message).toContain('sent invalid SFTP data')
  })
})
