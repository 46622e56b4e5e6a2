import { describe, expect, it, onTestFinished } from 'vitest'
import { ftp } from '../../src/providers/ftp/index.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { never, type Options, open, put as store } from '../helpers/target.ts'
import { startScriptedFtp } from '../servers/scripted-ftp.ts'

const MIB = 1024 * 1024

describe('options of ftp', () => {
  const minimal = { host: 'example.com', username: 'u', password: 'p', urlPrefix: 'https://img.example.com' }

  it('demand TLS and know no port', () => {
    expect(ftp.config.parse(minimal)).toEqual({
      ...minimal,
      secure: 'explicit',
      directory: '',
      atomic: true,
      connections: 4,
    })
  })

  it.each([
    ['host', 'ftp://example.com'],
    ['host', 'example.com/www'],
    ['port', 0],
    ['secure', true],
    ['password', ''],
    ['directory', '~/www'],
    ['directory', 'a\r\nDELE b'],
    ['connections', 0],
    ['urlPrefix', 'ftp://example.com'],
    ['urlPrefix', undefined],
  ])('refuse %s %j', (option, value) => {
    const { error } = ftp.config.safeParse({ ...minimal, [option]: value })
    expect(error?.issues.map(issue => issue.path)).toEqual([[option]])
  })

  it.each([
    [{ secure: 'none' }, 'without TLS'],
    [{ insecureTls: true }, '"insecureTls" disables certificate verification'],
  ])('warn when they are %j', async (options, words) => {
    const warnings: string[] = []
    await open(ftp, { ...minimal, ...options }, { warn: message => void warnings.push(message) })
    expect(warnings).toEqual([expect.stringContaining(words)])
  })
})

describe('ftp at a server that', () => {
  const password = 'very secret, sent by mistake'

  async function start(script: Parameters<typeof startScriptedFtp>[0], options: Options = {}, faults = {}) {
    const server = await startScriptedFtp(script, faults)
    onTestFinished(server.close)
    const login = { host: '127.0.0.1', port: server.port, secure: 'none', username: 'u', password }
    const more = { urlPrefix: 'https://img.example.com', ...options }
    const target = await open(ftp, { ...login, ...more }, { warn: () => {} })
    return { server, target, put: (content: string | Buffer = 'bytes') => store(target, 'x/a.bin', content) }
  }

  it('has a home with quotes in its name, and no SIZE', async () => {
    const { server, put } = await start({ PWD: '257 "/home/""u""" is here', SIZE: '502 What?' })
    await put()
    expect([...server.files]).toEqual([['/home/"u"/x/a.bin', Buffer.from('bytes')]])
    expect(server.commands).toContain('OPTS UTF8 ON')
  })

  it('answers 213 with a text for an empty file: it is stored, and found', async () => {
    const { server, put, target } = await start({ SIZE: '213 File is empty' })
    await put('')
    expect([...server.files]).toEqual([['/x/a.bin', Buffer.alloc(0)]])
    expect(await target.exists?.('x/a.bin', never())).toBe(true)
  })

  it('has no SIZE: a file is looked up in its folder', async () => {
    const { put, target } = await start({ SIZE: '500 What?', MLSD: '500 What?', FEAT: '500 What?' })
    await put()
    const names = ['x/a.bin', 'x/a', 'x/b.bin', 'x']
    const found = await Promise.all(names.map(name => target.exists?.(name, never())))
    expect(found).toEqual([true, false, false, false])
  })

  it('removes no files, and says 550 as for one that is missing: is not believed', async () => {
    const { put, target } = await start({ DELE: '550 No' })
    await put()
    await expect(target.remove?.('x/a.bin', never())).rejects.toThrow('returned 550 No')
  })

  it('has no EPSV, and names another machine by PASV: only its port is used (FTP bounce)', async () => {
    const { server, put } = await start({ EPSV: '502 What?' })
    await put()
    expect(server.files.get('/x/a.bin')?.toString()).toBe('bytes')
  })

  it('cannot rename, and takes no name with a leading dot: does with "atomic": false', async () => {
    const script = {
      RNFR: '502 What?',
      STOR: (path: string) => (path.includes('/.') ? '553 No such name' : undefined),
    }
    const error = await failureOf((await start(script)).put())
    expect(error.message).toContain('or allows no names with a leading dot, set "atomic" to false')
    const { server, put, target } = await start(script, { atomic: false })
    await target.check?.(never())
    await put()
    await put('other')
    expect([...server.files]).toEqual([['/x/a.bin', Buffer.from('other')]])
  })

  it.each([
    ['550 The specified network name is no longer available.', true],
    ['553 No such name', false],
  ])('resets the data connection, and says %s: is worth another try: %s', async (reason, retryable) => {
    const { put } = await start({}, {}, { resets: 1, reason })
    const error = await failureOf(put(Buffer.alloc(4 * MIB)))
    expect(error).toMatchObject({ retryable, message: expect.stringContaining(reason) })
  })

  it('lost some of the bytes: says so as transient, and keeps its hands off the file', async () => {
    const { server, put } = await start({ SIZE: '213 4' })
    const error = await failureOf(put())
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain('stored 4 of 5 bytes')
    expect(server.commands.filter(command => command.startsWith('RN'))).toEqual([])
    await expect.poll(() => server.files.size).toBe(0)
  })

  it('resets the data connection without a word: is named, and worth another try', async () => {
    const { server, put } = await start({}, {}, { resets: 1 })
    const bytes = Buffer.alloc(4 * MIB, 'a')
    const error = await failureOf(put(bytes))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expect(error.message).toContain("127.0.0.1 can't be reached, or closed the connection")
    await put(bytes)
    expect(server.files.get('/x/a.bin')?.length).toBe(bytes.length)
  })

  it('repeats the password in its answer: is not quoted', async () => {
    const { put } = await start({ PASS: rest => `530 "${rest}" is wrong` })
    const error = await failureOf(put())
    expect(error.message).toContain('returned 530 "[secret]" is wrong (the user name or password is wrong')
    expect(error.retryable).toBe(false)
  })

  it.each<[string, Record<string, string>, string, boolean, string]>([
    ['is busy', { greeting: '421 Too many' }, 'destination_failed', true, 'returned 421 Too many'],
    ['is closed', { USER: '530 Not now' }, 'destination_failed', false, 'returned 530 Not now'],
    ['has no data port', { EPSV: '425 No', PASV: '425 No' }, 'destination_failed', true, '425 No'],
    ['is full', { STOR: '452 No space' }, 'insufficient_storage', false, '452 No space'],
    ['has a quota', { STOR: '552 Quota' }, 'insufficient_storage', false, '552 Quota'],
    ['is in trouble', { STOR: '451 Oh no' }, 'destination_failed', true, '451 Oh no'],
    ['takes no such name', { STOR: '553 No' }, 'destination_failed', false, 'not accept this file name'],
    ['cannot rename', { RNFR: '502 What?' }, 'destination_failed', false, 'set "atomic" to false.'],
    ['is a web page', { STOR: '550 <b>See</b> https://x.org' }, 'destination_failed', false, '550 See x.org'],
    ['has no TLS', { AUTH: '502 What?' }, 'destination_failed', false, 'does not offer TLS'],
  ])('%s', async (_, script, code, retryable, words) => {
    const { put } = await start(script, { secure: 'AUTH' in script ? 'explicit' : 'none' })
    const error = await failureOf(put())
    expect(error).toMatchObject({ code, retryable })
    expect(error.message).toContain(words)
  })
})
