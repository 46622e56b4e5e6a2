import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { failureOf } from '../../../helpers/failure-of.ts'
import { hasAll, needs, needsAll } from '../../../helpers/needs.ts'
import { makeKey, OPENSSH_NEEDS, type OpenSsh, startOpenSsh } from '../../../servers/openssh.ts'
import { PROFTPD_NEEDS } from '../../../servers/proftpd.ts'
import { type ProFtpdSftp, startProFtpdSftp } from '../../../servers/proftpd-sftp.ts'
import { loginOf, type Options, openForTest, persist } from './open-sftp.ts'

const never = () => new AbortController().signal
const OTHER = `SHA256:${'x'.repeat(43)}`

/** Logs in, writes a file and removes it. */
async function check(options: Options, warn?: (message: string) => void): Promise<void> {
  const target = await openForTest(options, warn)
  await target.check?.(never())
}

async function makeDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sftp-login-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

describe('the host key of an SFTP server', () => {
  let server: OpenSsh

  beforeAll(async () => {
    if (hasAll(OPENSSH_NEEDS)) server = await startOpenSsh()
  })
  beforeEach(context => needsAll(context, OPENSSH_NEEDS))
  afterAll(() => server?.close())

  it.each([
    ['the fingerprint', (own: string) => own],
    ['one of several', (own: string) => [OTHER, own]],
  ])('is trusted without a word when it is %s of the configuration', async (_, pin) => {
    await check({ ...loginOf(server), hostFingerprint: pin(server.fingerprint) })
  })

  it('is refused when it is another one, before anything of the login is sent', async () => {
    const password = 'must-not-be-sent'
    const options = { ...loginOf(server), privateKeyFile: undefined, password, hostFingerprint: OTHER }
    const error = await failureOf(check(options))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain(`ssh-ed25519 ${server.fingerprint}, which is not in "hostFingerprint"`)
    expect(server.output()).not.toContain('Failed password')
  })

  it('is trusted on first use, once, with a warning that shows what to pin', async () => {
    const warnings: string[] = []
    const options = { ...loginOf(server), hostFingerprint: undefined }
    const target = await openForTest(options, message => warnings.push(message))
    await target.check?.(never())
    server.killSessions()
    await persist(async () => target.check?.(never()))
    expect(warnings).toEqual([
      expect.stringContaining(`"sftp/Default" (127.0.0.1, port ${server.port}) presented the host key`),
    ])
    expect(warnings[0]).toContain(`ssh-ed25519 ${server.fingerprint}`)
    expect(warnings[0]).toContain('Set "hostFingerprint" to pin it')
  })

  it('is refused when it is another one than on first use', async () => {
    const target = await openForTest({ ...loginOf(server), hostFingerprint: undefined }, () => {})
    await target.check?.(never())
    await server.restart({ withNewHostKey: true })
    const error = await failureOf(persist(async () => target.check?.(never())))
    expect(error.message).toContain(`ssh-ed25519 ${server.fingerprint}, but presented a different one before`)
    expect(error.retryable).toBe(false)
  })
})

describe('a login by key at OpenSSH', () => {
  let server: OpenSsh

  beforeAll(async () => {
    if (hasAll(OPENSSH_NEEDS)) server = await startOpenSsh()
  })
  beforeEach(context => needsAll(context, OPENSSH_NEEDS))
  afterAll(() => server?.close())

  it('takes the key as text', async () => {
    const privateKey = await readFile(server.keyFile, 'utf8')
    await check({ ...loginOf(server), privateKeyFile: undefined, privateKey })
  })

  it('fails with a key the server does not know, and shows nothing of it', async () => {
    const keyFile = join(await makeDirectory(), 'other')
    makeKey(keyFile)
    const privateKey = await readFile(keyFile, 'utf8')
    const error = await failureOf(check({ ...loginOf(server), privateKeyFile: undefined, privateKey }))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('it refused publickey (it accepts: publickey)')
    for (const line of privateKey.split('\n').filter(Boolean)) expect(error.message).not.toContain(line)
  })

  it('says that a password is of no use where only keys are taken', async () => {
    const error = await failureOf(check({ ...loginOf(server), privateKeyFile: undefined, password: 'pw' }))
    expect(error.message).toContain('it accepts only publickey, and no credentials for that are configured')
    expect(error.retryable).toBe(false)
  })

  it('uses an agent', async () => {
    const socket = await startAgent(await makeDirectory(), server.keyFile)
    await check({ ...loginOf(server), privateKeyFile: undefined, agent: socket })
  })

  it('says that an agent did not help', async () => {
    const socket = join(await makeDirectory(), 'nobody-listens')
    const error = await failureOf(check({ ...loginOf(server), privateKeyFile: undefined, agent: socket }))
    expect(error.message).toContain('it refused agent')
    expect(error.retryable).toBe(false)
  })

  it('goes on with the key when the agent cannot be used', async () => {
    await check({ ...loginOf(server), agent: join(await makeDirectory(), 'nobody-listens') })
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
  let server: ProFtpdSftp
  let login: Options

  beforeAll(async () => {
    if (!hasAll(PROFTPD_NEEDS)) return
    server = await startProFtpdSftp()
    const { port, username, fingerprint } = server
    login = { port, username, hostFingerprint: fingerprint }
  })
  beforeEach(context => needsAll(context, PROFTPD_NEEDS))
  afterAll(() => server?.close())

  it('takes an encrypted key with its passphrase', async () => {
    await check({ ...login, privateKeyFile: server.keyFile, passphrase: server.passphrase })
  })

  it.each([
    ['without a passphrase', undefined, 'Set "passphrase" if the private key is encrypted.'],
    ['with a wrong passphrase', 'not the passphrase', 'Check "passphrase".'],
  ])('says what to do about an encrypted key %s, and connects nowhere', async (_, passphrase, words) => {
    const options = { ...login, port: 1, privateKeyFile: server.keyFile, passphrase }
    const error = await failureOf(check(options))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain(`"privateKeyFile" is not a usable private key. ${words}`)
    expect(error.message).not.toContain(passphrase ?? server.keyFile)
  })

  it('says that the file of the key is missing, and not where', async () => {
    const privateKeyFile = join(await makeDirectory(), 'absent')
    const error = await failureOf(check({ ...login, privateKeyFile }))
    expect(error.message).toMatch(/^"privateKeyFile" can't be read \(ENOENT\)\./)
    expect(error.retryable).toBe(false)
  })

  it('falls back to the password when the key is refused', async () => {
    const privateKeyFile = join(await makeDirectory(), 'other')
    makeKey(privateKeyFile)
    await check({ ...login, privateKeyFile, password: server.password })
  })
})

/** A server of the ssh2 package that lets in whoever answers its questions. It notes every attempt. */
async function startAsking(methods: ssh2.AuthenticationType[], password: string) {
  const keyFile = join(await makeDirectory(), 'host')
  const hostFingerprint = makeKey(keyFile)
  const attempts: string[] = []
  const server = new ssh2.Server({ hostKeys: [await readFile(keyFile)] }, client => {
    client.on('error', () => {})
    client.on('authentication', context => {
      attempts.push(context.method)
      const isRight = (answer?: string) => (answer === password ? context.accept() : context.reject(methods))
      if (context.method === 'keyboard-interactive' && methods.includes('keyboard-interactive')) {
        const questions = [
          { prompt: 'Your name: ', echo: true },
          { prompt: 'Password: ', echo: false },
        ]
        context.prompt(questions, ([name, answer]) => isRight(name === '' ? answer : undefined))
      } else if (context.method === 'password') isRight(context.password)
      else context.reject(methods)
    })
    client.on('session', accept => {
      accept().on('sftp', (_accept, reject) => reject())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
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
    const server = createServer(socket => void socket.on('error', () => {}).end(greeting))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const error = await failureOf(check({ port, username: 'u', password: 'p' }))
    expect(error.message).toContain(words)
    expect(error.retryable).toBe(retryable)
  })
})
