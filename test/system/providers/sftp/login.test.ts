import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type ssh2 from 'ssh2'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ProviderDeps } from '../../../../src/providers/contract.ts'
import { makeDirectory } from '../../../helpers/directory.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { hasAll, type Needs, needs, needsAll } from '../../../helpers/needs.ts'
import { never, type Options } from '../../../helpers/target.ts'
import { makeKey, OPENSSH_NEEDS, startOpenSsh } from '../../../servers/openssh.ts'
import { PROFTPD_NEEDS } from '../../../servers/proftpd.ts'
import { startProFtpdSftp } from '../../../servers/proftpd-sftp.ts'
import { startSsh2 } from '../../../servers/ssh2.ts'
import { serveRaw } from '../../../uploader/sources/servers.ts'
import { loginOf, openSftp, persist } from './open-sftp.ts'

const OTHER = `SHA256:${'x'.repeat(43)}`

/** Logs in, writes a file and removes it. */
async function check(options: Options, deps?: Partial<ProviderDeps>): Promise<void> {
  await (await openSftp(options, deps)).check?.(never())
}

/** One server for the tests of a group. */
function shareServer<T extends { close(): Promise<void> }>(
  requires: Needs,
  start: () => Promise<T>,
): () => T {
  let server: T | undefined
  beforeAll(async () => {
    if (hasAll(requires)) server = await start()
  })
  beforeEach(context => needsAll(context, requires))
  afterAll(() => server?.close())
  return () => server as T
}

describe('the host key of an SFTP server', () => {
  const server = shareServer(OPENSSH_NEEDS, startOpenSsh)

  it.each([
    ['the fingerprint', (own: string) => own],
    ['one of several', (own: string) => [OTHER, own]],
  ])('is trusted without a word when it is %s of the configuration', async (_, pin) => {
    await check({ ...loginOf(server()), hostFingerprint: pin(server().fingerprint) })
  })

  it('is refused when it is another one, before anything of the login is sent', async () => {
    const password = 'must-not-be-sent'
    const options = { ...loginOf(server()), privateKeyFile: undefined, password, hostFingerprint: OTHER }
    const error = await failureOf(check(options))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain(`ssh-ed25519 ${server().fingerprint}, which is not in "hostFingerprint"`)
    expect(server().output()).not.toContain('Failed password')
  })

  it('is trusted on first use, once, with a warning that shows what to pin', async () => {
    const warnings: string[] = []
    const options = { ...loginOf(server()), hostFingerprint: undefined }
    const target = await openSftp(options, { warn: message => void warnings.push(message) })
    await target.check?.(never())
    server().killSessions()
    await persist(async () => target.check?.(never()))
    expect(warnings).toEqual([
      expect.stringContaining(`"sftp/Default" (127.0.0.1, port ${server().port}) presented the host key`),
    ])
    expect(warnings[0]).toContain(`ssh-ed25519 ${server().fingerprint}`)
    expect(warnings[0]).toContain('Set "hostFingerprint" to pin it')
  })

  it('is refused when it is another one than on first use', async () => {
    const target = await openSftp({ ...loginOf(server()), hostFingerprint: undefined }, { warn: () => {} })
    await target.check?.(never())
    await server().restart({ withNewHostKey: true })
    const error = await failureOf(persist(async () => target.check?.(never())))
    expect(error.message).toContain(
      `ssh-ed25519 ${server().fingerprint}, but presented a different one before`,
    )
    expect(error.retryable).toBe(false)
  })
})

describe('a login by key at OpenSSH', () => {
  const server = shareServer(OPENSSH_NEEDS, startOpenSsh)

  it('takes the key as text', async () => {
    const privateKey = await readFile(server().keyFile, 'utf8')
    await check({ ...loginOf(server()), privateKeyFile: undefined, privateKey })
  })

  it('fails with a key the server does not know, and shows nothing of it', async () => {
    const keyFile = join(await makeDirectory(), 'other')
    makeKey(keyFile)
    const privateKey = await readFile(keyFile, 'utf8')
    const error = await failureOf(check({ ...loginOf(server()), privateKeyFile: undefined, privateKey }))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('it refused publickey (it accepts: publickey)')
    for (const line of privateKey.split('\n').filter(Boolean)) expect(error.message).not.toContain(line)
  })

  it('says that a password is of no use where only keys are taken', async () => {
    const error = await failureOf(check({ ...loginOf(server()), privateKeyFile: undefined, password: 'pw' }))
    expect(error.message).toContain('it accepts only publickey, and no credentials for that are configured')
    expect(error.retryable).toBe(false)
  })

  it('uses an agent', async () => {
    const socket = await startAgent(await makeDirectory(), server().keyFile)
    await check({ ...loginOf(server()), privateKeyFile: undefined, agent: socket })
  })

  it('says that an agent did not help', async () => {
    const socket = join(await makeDirectory(), 'nobody-listens')
    const error = await failureOf(check({ ...loginOf(server()), privateKeyFile: undefined, agent: socket }))
    expect(error.message).toContain('it refused agent')
    expect(error.retryable).toBe(false)
  })

  it('goes on with the key when the agent cannot be used', async () => {
    await check({ ...loginOf(server()), agent: join(await makeDirectory(), 'nobody-listens') })
  })
})

/** @returns the path of its socket */
async function startAgent(directory: string, keyFile: string): Promise<string> {
  const socket = join(directory, 'agent')
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void agent.kill())
  await once(agent.stdout, 'data')
  execFileSync('ssh-add', ['-q', keyFile], { env: { ...process.env, SSH_AUTH_SOCK: socket } })
  return socket
}

describe('a login at ProFTPD', () => {
  const server = shareServer(PROFTPD_NEEDS, startProFtpdSftp)
  const login = () => {
    const { port, username, fingerprint } = server()
    return { port, username, hostFingerprint: fingerprint }
  }

  it('takes an encrypted key with its passphrase', async () => {
    await check({ ...login(), privateKeyFile: server().keyFile, passphrase: server().passphrase })
  })

  it.each([
    ['without a passphrase', undefined, 'Set "passphrase" if the private key is encrypted.'],
    ['with a wrong passphrase', 'not the passphrase', 'Check "passphrase".'],
  ])('says what to do about an encrypted key %s, and connects nowhere', async (_, passphrase, words) => {
    const options = { ...login(), port: 1, privateKeyFile: server().keyFile, passphrase }
    const error = await failureOf(check(options))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain(`"privateKeyFile" is not a usable private key. ${words}`)
    expect(error.message).not.toContain(passphrase ?? server().keyFile)
  })

  it('says that the file of the key is missing, and not where', async () => {
    const privateKeyFile = join(await makeDirectory(), 'absent')
    const error = await failureOf(check({ ...login(), privateKeyFile }))
    expect(error.message).toMatch(/^"privateKeyFile" can't be read \(ENOENT\)\./)
    expect(error.retryable).toBe(false)
  })

  it('falls back to the password when the key is refused', async () => {
    const privateKeyFile = join(await makeDirectory(), 'other')
    makeKey(privateKeyFile)
    await check({ ...login(), privateKeyFile, password: server().password })
  })
})

/** A server of the ssh2 package that lets in whoever answers its questions. It notes every attempt. */
async function startAsking(methods: ssh2.AuthenticationType[], password: string) {
  const keyFile = join(await makeDirectory(), 'host')
  const hostFingerprint = makeKey(keyFile)
  const attempts: string[] = []
  const port = await startSsh2(
    client => {
      client.on('authentication', context => {
        attempts.push(context.method)
        const isRight = (answer?: string) =>
          answer === password ? context.accept() : context.reject(methods)
        if (context.method === 'keyboard-interactive' && methods.includes('keyboard-interactive')) {
          const questions = [
            { prompt: 'Your name: ', echo: true },
            { prompt: 'Password: ', echo: false },
          ]
          context.prompt(questions, ([name, answer]) => isRight(name === '' ? answer : undefined))
        } else if (context.method === 'password') isRight(context.password)
        else context.reject(methods)
      })
      client.on('session', accept => void accept().on('sftp', (_accept, reject) => reject()))
    },
    [await readFile(keyFile)],
  )
  return { options: { port, username: 'u', hostFingerprint }, attempts }
}

describe('a login by password', () => {
  beforeEach(context => needs(context, 'ssh-keygen', 'openssh-client'))

  it('answers questions where the server takes no password in one piece', async () => {
    const { options, attempts } = await startAsking(['keyboard-interactive'], 'the password')
    const error = await failureOf(check({ ...options, password: 'the password' }))
    expect(attempts).toEqual(['none', 'keyboard-interactive'])
    expect(error.message).toContain('accepted the login but does not offer SFTP')
  })

  it('gives a wrong password once, since servers lock accounts', async () => {
    const { options, attempts } = await startAsking(['password', 'keyboard-interactive'], 'the password')
    const error = await failureOf(check({ ...options, password: 'another password' }))
    expect(attempts).toEqual(['none', 'password'])
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('it refused password')
    expect(error.message).not.toContain('another password')
  })
})

describe('what is no SFTP server', () => {
  it.each([
    ['speaks another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'closed the connection', true],
    ['speaks an SSH of old', 'SSH-1.5-old\r\n', 'is not a compatible SSH server', false],
  ])('%s', async (_, greeting, words, retryable) => {
    const { port } = await serveRaw(socket => void socket.end(greeting))
    const error = await failureOf(check({ port, username: 'u', password: 'p' }))
    expect(error.message).toContain(words)
    expect(error.retryable).toBe(retryable)
  })
})
