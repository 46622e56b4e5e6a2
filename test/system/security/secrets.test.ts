import { createHash } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import ssh2 from 'ssh2'
import { expect, it, onTestFinished, vi } from 'vitest'
import { collectMarked } from '../../../src/options.ts'
import type { Provider } from '../../../src/providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../../../src/providers/registry.ts'
import { runBuilt, runCli } from '../../cli/run-cli.ts'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { examplesOf } from '../../helpers/documents.ts'
import { list, post } from '../../helpers/form.ts'
import { inBase64 } from '../../helpers/secrets.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'
import { startApp } from '../../helpers/start-app.ts'
import { makeHostKey, startSsh2 } from '../../servers/ssh2.ts'
import { serve, serveRaw } from '../../uploader/sources/servers.ts'

const names = new Set<string>()
/** Found whole in every spelling that encodes what is special only; the rest of a secret is everything special. */
function core(name: string): string {
  names.add(name)
  return `m4rk0${name}0q9`
}
const mark = (name: string): string => `${core(name)}+/=%&"' \\x`
/** For places that take letters and digits only. */
const plain = (name: string): string => `${core(name)}Zz1`

/** A web server that refuses everything and repeats, in its answer, all that it was told, or the values of headers alone. */
async function startMirror(): Promise<{ url: string; told: string[]; repeatBarely(isBare: boolean): void }> {
  const told: string[] = []
  let isBare = false
  const { origin: url } = await serve(async (req, res) => {
    const path = req.url ?? ''
    const body = (await text(req).catch(() => '')).slice(0, 2000)
    const lines = Array.from({ length: req.rawHeaders.length / 2 }, (_, i) =>
      req.rawHeaders.slice(2 * i, 2 * i + 2).join(': '),
    )
    told.push(`${req.method} ${path}`, ...lines)
    if (path.startsWith('/digest') && !req.headers.authorization) {
      res.setHeader('WWW-Authenticate', 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256')
      res.writeHead(401).end()
      return
    }
    if (req.method === 'HEAD') {
      res.writeHead(404).end() // nothing is there yet: go on
      return
    }
    const { authorization, cookie, ...others } = req.headers
    const values = [authorization, cookie, ...Object.values(others)].filter(value => value !== undefined)
    const all = JSON.stringify({ url: path, headers: req.headers, body })
    const inLines = path.startsWith('/lines') ? `${lines.join('\n')}\n${path}\n${body}` : all
    const echo = isBare ? values.join('\n') : inLines
    const escaped = echo.replace(/&/g, '&amp;').replace(/</g, '&lt;')
    const xml = `<Message>${escaped}</Message><StringToSign>${escaped}</StringToSign>`
    if (path.startsWith('/redirect')) res.writeHead(302, { Location: `http://127.0.0.1:1${path}` }).end(echo)
    else if (path.startsWith('/s3'))
      res.writeHead(403).end(`<Error><Code>SignatureDoesNotMatch</Code>${xml}</Error>`)
    else res.writeHead(403, { 'X-Ms-Error-Code': 'Refused' }).end(echo)
  })
  return {
    ...{ url, told },
    repeatBarely(value) {
      isBare = value
    },
  }
}

/** A server of lines, such as FTP's, that repeats what it was told. */
async function startParrot(): Promise<number> {
  const { port } = await serveRaw(socket => {
    socket.write('220 hello\r\n')
    socket.on('data', data => {
      const line = String(data).trim()
      socket.write(/^USER/.test(line) ? '331 go on\r\n' : `530 you said ${line}\r\n`)
    })
  })
  return port
}

/** An SSH server that takes no password. */
async function startSsh(): Promise<{ port: number; fingerprint: string }> {
  const hostKey = makeHostKey()
  const key = ssh2.utils.parseKey(hostKey)
  if (key instanceof Error) throw key
  const hash = createHash('sha256').update(key.getPublicSSH()).digest('base64').replace('=', '')
  const refuse = (client: ssh2.Connection) =>
    client.on('authentication', attempt => attempt.reject(['password']))
  return { port: await startSsh2(refuse, [hostKey]), fingerprint: `SHA256:${hash}` }
}

const PROVIDERS = (await Promise.all(PROVIDER_TYPES.map(loadProvider))).filter(one => one !== undefined)

/** Options that a provider makes with `secret()`. */
function secretOptions({ config }: Provider): string[] {
  return Object.entries(config.shape)
    .filter(([, schema]) =>
      ['x', { x: 'x' }].some(value => collectMarked(schema, value, 'secret').length > 0),
    )
    .map(([option]) => option)
}

/** A secret that an option takes. */
function secretFor(type: string, option: string, given: unknown): unknown {
  const name = `${type}${option.toLowerCase()}`
  if (option === 'sasToken') return `sv=2024-01-01&sig=${plain(name)}`
  if (option === 'accountKey') return Buffer.from(mark(name).padEnd(64, 'x')).toString('base64')
  if (typeof given === 'object' && given)
    return Object.fromEntries(Object.keys(given).map(one => [one, plain(name)]))
  return type !== 'ftp' && /password|secret.*Key|serverKey/.test(option) ? mark(name) : plain(name)
}

type Places = Record<string, Record<string, Record<string, unknown>>>

/** The documented examples of every provider, each at the mirror and with secrets of its own. */
function examplesAt(url: string, parrot: number, ssh: { port: number; fingerprint: string }): Places {
  const others: Record<string, object> = {
    ftp: { host: '127.0.0.1', port: parrot, secure: 'none' },
    sftp: { host: '127.0.0.1', port: ssh.port, hostFingerprint: ssh.fingerprint, knownHostsFile: undefined },
    s3: { linkType: 'presigned', urlPrefix: undefined },
    gitea: { apiUrl: `${url}/lines/api/v1` },
    gitlab: { apiUrl: `${url}/lines/api/v4` },
    command: { command: ['sh', '-c', 'cat > /dev/null; env; exit 1'] },
  }
  const ofType = (provider: Provider) => {
    const { type, config } = provider
    const at = 'accessKeyId' in config.shape ? `${url}/s3` : `${url}/lines`
    const s3 =
      'sessionToken' in config.shape ? { addressingStyle: 'path', sessionToken: plain('session') } : {}
    const places = ['url', 'endpoint', 'apiUrl'].filter(
      option => option in config.shape && type !== 'command',
    )
    const shared = { ...Object.fromEntries(places.map(option => [option, at])), ...s3, ...others[type] }
    return Object.entries(examplesOf(type)).map(([name, example]) => {
      const isHost = provider.about?.family === 'host'
      const secrets = secretOptions(provider).filter(option => isHost || option in example)
      const marked = Object.fromEntries(
        secrets.map(option => [option, secretFor(type, option, example[option])]),
      )
      return [name, { ...example, ...shared, ...marked }] as const
    })
  }
  return Object.fromEntries(PROVIDERS.map(one => [one.type, Object.fromEntries(ofType(one))]))
}

/** What the examples have not. */
function specialsAt(url: string, ssh: { port: number; fingerprint: string }): Places {
  const at = (path: string) => `${url}${path}`
  const s3 = {
    ...{ bucket: 'b', region: 'r', addressingStyle: 'path', accessKeyId: 'id', secretAccessKey: mark('s3') },
    ...{ urlPrefix: 'http://x.example', endpoint: at('/lines') },
  }
  const http = {
    headers: { Authorization: 'Bearer {secret:bearer}', Cookie: 'a=b; session={secret:cookie}' },
    query: { token: '{secret:query}' },
    fields: { password: '{secret:field}' },
    secrets: { bearer: plain('bearer'), cookie: plain('cookie'), query: mark('query'), field: mark('field') },
  }
  const dav = { username: 'me', password: mark('dav') }
  const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${plain('private')}\n-----END OPENSSH PRIVATE KEY-----\n`
  const smms = { url: at('/lines'), token: plain('host') }
  const proxied = mirrorLogin(url)
  return {
    local: {
      Default: { directory: 'stored', serve: true },
      safe: { directory: 'stored', serve: true, mirrors: [{ destination: 'gitlab/mirror', required: true }] },
    },
    webdav: {
      basic: { url: at('/basic'), ...dav },
      digest: { url: at('/digest'), ...dav, authType: 'digest' },
      lines: { url: at('/lines'), ...dav },
    },
    s3: {
      signed: { ...s3, linkType: 'presigned', urlPrefix: undefined },
      environment: { ...s3, accessKeyId: undefined, secretAccessKey: undefined, endpoint: at('/s3') },
    },
    http: {
      json: { url: at('/json'), ...http },
      lines: { url: at('/lines'), ...http },
      redirect: { url: at('/redirect'), ...http },
    },
    sftp: {
      key: {
        ...{ host: '127.0.0.1', port: ssh.port, hostFingerprint: ssh.fingerprint, username: 'me' },
        ...{ urlPrefix: 'http://x.example', privateKey: key, passphrase: mark('phrase') },
      },
    },
    piclist: { query: { url: at('/redirect'), serverKey: mark('other'), keyInQuery: true } },
    gitlab: { mirror: { apiUrl: at('/lines/api/v4'), repo: 'o/r', token: plain('mirror') } },
    smms: {
      through: { ...smms, proxy: `http://me:${plain('proxy')}@127.0.0.1:1` },
      refused: { ...smms, proxy: proxied },
    },
    lsky: { v2: { url: at('/json'), token: plain('host') } },
  }
}

const mirrorLogin = (url: string) => url.replace('//', `//me:${plain('proxy')}@`)

function configOf(mirror: string, parrot: number, ssh: { port: number; fingerprint: string }) {
  const providers = examplesAt(mirror, parrot, ssh)
  for (const [type, more] of Object.entries(specialsAt(mirror, ssh)))
    Object.assign(providers[type] ?? {}, more)
  return {
    server: { key: mark('upload') },
    metrics: { enabled: true, token: mark('metrics') },
    auth: {
      keys: [
        { name: 'ci', key: '${CI_KEY}' },
        { name: 'file', key: '${file:key.txt}' },
      ],
      maxFailures: 0,
    },
    log: { level: 'trace' },
    limits: { retries: 0, destinationTimeout: '5000ms' },
    default: 'local/Default',
    providers,
    finalization: {
      hooks: [{ name: 'web', webhook: `${mirror}/lines/${plain('hookpath')}`, secret: mark('hook') }],
    },
  }
}

const ENV = { CI_KEY: mark('ci'), AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: plain('aws'), DEBUG: '1' }

/** What a secret or anything made of it looks like, for a search that knows no escapes. */
function spellingsOf(name: string): string[] {
  const secret = core(name)
  const hex = Buffer.from(secret).toString('hex')
  return [secret, hex, hex.toUpperCase(), ...inBase64(secret), [...secret].reverse().join('')]
}

/** Credentials that were made of the secrets for one request. */
function credentialsIn(told: readonly string[]): string[] {
  const all = told.flatMap(line => [
    ...line.matchAll(
      /(?:Signature=|signature=|response="|sha256=|Basic |SharedKey \w+:|sig=)([\w+/=%.-]{16,})/gi,
    ),
  ])
  return [...new Set(all.map(([, credential = '']) => credential))]
}

it('no secret, and nothing made of one, leaves the process but to where it belongs', {
  timeout: 120_000,
}, async () => {
  const directory = await makeDirectory()
  const mirror = await startMirror()
  const config = configOf(mirror.url, await startParrot(), await startSsh())
  const options = Object.entries(config.providers).flatMap(([type, all]) =>
    Object.values(all).flatMap(one => Object.keys(one).map(option => `${type}.${option}`)),
  )
  const forgotten = PROVIDERS.flatMap(one =>
    secretOptions(one).map(option => `${one.type}.${option}`),
  ).filter(option => !options.includes(option))
  expect(
    forgotten,
    'add them to an example in its page of the documents, or to specialsAt of this file',
  ).toEqual([])
  await writeFile(join(directory, 'key.txt'), `${mark('file')}\n`)
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  await writeFile(join(directory, 'a.txt'), 'hello')
  const server = await spawnServer(['--port', '0'], {
    directory,
    env: { ...ENV, ...(await crashBy('throw error', directory)) },
  })
  const url = await server.url
  const said: string[] = []

  const destinations = Object.entries(config.providers).flatMap(([type, all]) =>
    Object.keys(all).map(name => `picbed=${type}&configName=${name}`),
  )
  const body = '{"list":["data:,hello"]}'
  const keys = ['upload', 'ci', 'file', 'guess'].map(mark)
  const stranger = { 'X-Forwarded-For': '203.0.113.9' }
  const encode = encodeURIComponent
  const send = async (method: string, target: string, headers: Record<string, string>, json?: string) => {
    const reply = await ask(url, method, target, { headers, ...(json !== undefined && { body: json }) })
    said.push(JSON.stringify(reply.headers), reply.body)
    return reply.status
  }
  for (const isBare of [true, false]) {
    mirror.repeatBarely(isBare)
    await Promise.all(destinations.map(one => send('POST', `/upload?${one}`, {}, body)))
  }
  for (const key of keys) {
    await send('POST', `/upload?key=${encode(key)}`, stranger, body)
    await send('POST', '/upload', { ...stranger, Authorization: `Bearer ${key}` }, body)
    await send('POST', '/upload', { ...stranger, 'X-Upload-Key': key }, '{"list":[')
    await send('DELETE', `/upload?key=${encode(key)}`, { ...stranger, Authorization: key })
    await send('GET', `/files/Default/a.txt?key=${encode(key)}`, {})
  }
  await send('GET', `/files/Default/${encode(mark('upload'))}`, {})
  await send('OPTIONS', `/upload?key=${encode(mark('upload'))}`, stranger)
  const pages = ['/', '/upload-server.sxcu', '/openapi.json', '/metrics'].map(path => `${path}?key=`)
  for (const page of pages) {
    await send('GET', page + encode(mark('upload')), stranger)
    expect(await send('GET', page + encode(mark('upload')), {})).toBe(200)
  }
  await send('GET', '/metrics', { ...stranger, Authorization: `Bearer ${mark('metrics')}` })
  expect(mirror.told.length).toBeGreaterThan(40)

  const [summary, made] = ['summary.md', 'made.json'].map(name => join(directory, name)) as [string, string]
  const run = async (...args: string[]) => {
    const { DEBUG, ...env } = { ...ENV, GITHUB_STEP_SUMMARY: summary }
    // What a process alone could add, such as a warning of Node, is looked for where something is sent.
    const { stdout, stderr } = await (args[0] === 'upload' ? runBuilt : runCli)(args, {
      cwd: directory,
      env: args[0] === 'init' ? env : { ...env, DEBUG },
    })
    said.push(stdout, stderr)
  }
  const through = ['upload', 'a.txt', '--server', url, '--key', mark('upload')]
  const init = ['init', '--yes', '--provider', 'smms', '--set', `token=${mark('init')}`]
  await Promise.all([
    run('config', 'show'),
    run('config', 'validate'),
    run('check'),
    run('upload', 'a.txt', '--github-summary', '--picbed', 'http', '--config-name', 'lines'),
    run(...through, '--picbed', 'webdav', '--config-name', 'lines'),
    run('history', '--json'),
    run('finalize'),
    run(...init, '--set', `url=${mirror.url}/lines`, '--key', mark('init'), '--config', made),
    run(...init, '--no-check', '--config', join(directory, 'written.json')),
  ])
  said.push(await readFile(summary, 'utf8'))
  // Nothing but the configuration keeps any.
  await rm(join(directory, 'written.json'))
  for (const file of await readdir(directory, { recursive: true, withFileTypes: true }))
    if (file.isFile() && !/^(?:upload-server\.json|key\.txt)$/.test(file.name))
      said.push(await readFile(join(file.parentPath, file.name), 'latin1'))
  server.process.kill('SIGUSR2')
  expect(await server.exit).toBe(1)
  said.push(...server.lines, server.errors())
  expect(server.errors()).toMatch(/report it to upload-server\.[\s\S]*crashed with[\s\S]*caused by/i)

  const everything = said.join('\n')
  const leaked = [...names].filter(name => spellingsOf(name).some(spelling => everything.includes(spelling)))
  expect(leaked.map(name => excerptAround(everything, spellingsOf(name)))).toEqual([])
  const credentials = credentialsIn(mirror.told)
  expect(credentials.length).toBeGreaterThan(10)
  expect(
    credentials.filter(one => everything.includes(one)).map(one => excerptAround(everything, [one])),
  ).toEqual([])
})

/** Has the process end, at SIGUSR2, by a statement about an `error` that holds what is secret, known or not. */
async function crashBy(statement: string, directory: string): Promise<Record<string, string>> {
  const script = `process.on('SIGUSR2', () => {
    const { KNOWN, UNKNOWN } = process.env
    const error = new Error('crashed with ' + KNOWN, { cause: new Error('because of ' + KNOWN) })
    error.request = { password: UNKNOWN }
    error.cause.stack += '\\nAuthorization: AWS4-HMAC-SHA256 Signature=' + UNKNOWN
    ${statement}
  })`
  const file = join(directory, 'crash.mjs')
  await writeFile(file, script)
  return { NODE_OPTIONS: `--import=${pathToFileURL(file)}`, KNOWN: mark('upload'), UNKNOWN: plain('crash') }
}

it('a promise that nobody waits for ends the server without a secret in its report', async () => {
  const directory = await makeDirectory()
  const file = join(directory, 'upload-server.json')
  await writeFile(file, JSON.stringify({ server: { port: 0, key: mark('old'), watch: false } }))
  const env = { ...(await crashBy('Promise.reject(error)', directory)), KNOWN: mark('upload') + mark('old') }
  const server = await spawnServer([], { directory, env })
  await server.url
  // Requests may still use the key of before.
  await writeFile(file, JSON.stringify({ server: { port: 0, key: mark('upload'), watch: false } }))
  server.process.kill('SIGHUP')
  await vi.waitUntil(() => server.lines.some(line => line.includes('Configuration reloaded')), 10_000)
  server.process.kill('SIGUSR2')
  expect(await server.exit).toBe(1)
  expect(server.errors()).toMatch(/crashed with \[secret\]\[secret\]/)
  for (const name of ['upload', 'old', 'crash']) expect(server.errors()).not.toContain(core(name))
})

function excerptAround(everything: string, spellings: readonly string[]): string {
  const found = spellings.find(spelling => everything.includes(spelling)) ?? ''
  const at = everything.indexOf(found)
  return everything.slice(Math.max(0, at - 150), at + found.length + 50)
}

it('attack: a mirror repeats its login, and the upload is a success all the same', async () => {
  const { origin: url } = await serve(
    (req, res) => void res.writeHead(403).end(`no: ${req.headers.authorization}`),
  )
  const directory = await makeDirectory()
  const local = { directory: 'stored', serve: true, mirrors: [{ destination: 'webdav/Default' }] }
  const webdav = { url, username: 'me', password: mark('mirror') }
  const config = { default: 'local', providers: { local: { Default: local }, webdav: { Default: webdav } } }
  const app = await startApp({ directory, config })
  const answer = await post(`${app.url}/upload`, list('data:,hello'))
  expect(answer.status).toBe(200)
  const kept = await readFile(join(directory, 'data/upload-server/store.db-wal'), 'latin1')
  for (const said of [JSON.stringify(answer), kept, app.rawLog()]) {
    expect(said).toMatch(/no: Basic (?:\[hidden\]|\w*\[secret\])/)
    expect(spellingsOf('mirror').filter(spelling => said.includes(spelling))).toEqual([])
  }
})

const AT_X = { urlPrefix: 'http://x.example' }
it.each<[type: string, optionsAt: (url: string) => object]>([
  ['openlist', url => ({ url, username: 'me', password: mark('other'), directory: '/local' })],
  [
    'dogecloud',
    url => ({ apiUrl: url, accessKey: 'id', secretKey: mark('vendor'), bucket: 'pics', ...AT_X }),
  ],
  ['s3', url => ({ bucket: 'b', endpoint: url, addressingStyle: 'path', ...AT_X })],
])('attack: a credential that was made on the way is repeated by %s', async (type, optionsAt) => {
  const { port } = await serve((req, res) => {
    const url = `http://localhost:${port}`
    req.resume()
    if (req.url === '/api/auth/login')
      return void res.end(JSON.stringify({ code: 200, message: '', data: { token: plain('session') } }))
    if (req.url?.startsWith('/auth/tmp_token')) {
      const Credentials = {
        ...{ accessKeyId: 'id', secretAccessKey: mark('aws') },
        sessionToken: plain('session'),
      }
      const Buckets = [{ name: 'pics', s3Bucket: 'b', s3Endpoint: url }]
      const data = { Credentials, ExpiredAt: 4_000_000_000, Buckets }
      return void res.end(JSON.stringify({ code: 200, data }))
    }
    const { 'x-amz-security-token': token, authorization } = req.headers
    const said = `no: ${String(token ?? authorization)}`
    if (type === 'openlist') res.end(JSON.stringify({ code: 500, message: said, data: null }))
    else res.writeHead(403).end(`<Error><Code>No</Code><Message>${said}</Message></Error>`)
  })
  const url = `http://localhost:${port}`
  const lent = {
    ...{ AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: plain('aws') },
    AWS_SESSION_TOKEN: plain('session'),
  }
  Object.assign(process.env, lent)
  onTestFinished(() => {
    for (const name of Object.keys(lent)) delete process.env[name]
  })
  const providers = { [type]: { Default: optionsAt(url) } }
  const app = await startApp({ config: { default: `${type}/Default`, providers, limits: { retries: 0 } } })
  const answer = JSON.stringify(await post(`${app.url}/upload`, list('data:,hello')))
  expect(answer).toContain('no: [secret]')
  for (const said of [answer, app.rawLog()])
    for (const name of ['session', 'aws'])
      expect(spellingsOf(name).filter(spelling => said.includes(spelling))).toEqual([])
})

it('attack: a destination repeats a key, and what is shown of its answer ends in the middle of it', async () => {
  let before = ''
  const { origin: url } = await serve((req, res) => {
    req.resume()
    const said = [
      `${before} ${req.headers['x-api-key']}`,
      JSON.stringify({ x: before, key: req.headers['x-api-key'] }),
    ]
    res.writeHead(400).end(said[before.length % 2])
  })
  const config = { providers: { chevereto: { Default: { url, apiKey: plain('host') } } } }
  const app = await startApp({ config })
  for (let length = 215; length < 256; length++) {
    before = 'so much '.repeat(32).slice(0, length)
    const { message } = await post(`${app.url}/upload`, list('data:,hello'))
    expect(message).toContain('so much')
    expect(message).not.toContain(core('host').slice(0, 3))
  }
})

it.each<[does: string, said: RegExp, (req: IncomingMessage, res: ServerResponse, other: string) => void]>([
  [
    'leads elsewhere',
    /redirects to http:\/\/localhost:\d+ \(307\)/,
    (_req, res, other) => res.writeHead(307, { Location: `${other}/upload` }).end(),
  ],
  [
    'repeats the key',
    /no: \[secret\]/,
    (req, res) => res.end(JSON.stringify({ success: false, message: `no: ${req.headers['x-upload-key']}` })),
  ],
  [
    'never ends its answer',
    /responded with 200, which is not the response of an upload server/,
    (_req, res) => {
      const more = (error?: unknown) => void (error || res.write(' '.repeat(1024 * 1024), more))
      more()
    },
  ],
])('attack: the server of "upload --server" %s', async (_, said, answer) => {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'a.txt'), 'hello')
  const arrived: string[] = []
  const other = await serve((req, res) => {
    arrived.push(String(req.headers['x-upload-key']))
    res.end('{"success":true,"result":["http://x.example/a"]}')
  })
  const otherUrl = `http://localhost:${other.port}`
  const { origin: url } = await serve(
    (req, res) => void req.resume().on('end', () => answer(req, res, otherUrl)),
  )
  const key = plain('upload')
  const { code, stdout, stderr } = await runCli(['upload', 'a.txt', '--server', url, '--key', key], {
    cwd: directory,
  })
  expect([code, stdout, arrived]).toEqual([1, '', []])
  expect(stderr).toMatch(said)
  expect(stderr).not.toContain(core('upload'))
})

it('the address of a database that does not answer shows no password', async () => {
  const directory = await makeDirectory()
  const url = `postgres://me:${encodeURIComponent(mark('pg'))}@127.0.0.1:1/db`
  const config = { database: { driver: 'postgres', url }, log: { level: 'trace' } }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  await writeFile(join(directory, 'a.txt'), 'hello')
  const env = { DEBUG: '1' }
  const results = await Promise.all([
    runCli(['upload', 'a.txt'], { cwd: directory, env }),
    runCli(['history'], { cwd: directory, env }),
    runCli(['config', 'show'], { cwd: directory, env }),
  ])
  const everything = JSON.stringify(results)
  expect(everything).toContain('[secret]')
  expect(spellingsOf('pg').filter(spelling => everything.includes(spelling))).toEqual([])
})

const HIDDEN = core('upload')
it.each<[what: string, config: string]>([
  ['as a list', `{"server":{"key":["${HIDDEN}"]}}`],
  ['as a number of a port', `{"server":{"port":"${HIDDEN}"}}`],
  ['where there is not an option', `{"server":{"token":"${HIDDEN}"}}`],
  ['behind a missing quote', `{"server":{"key":"${HIDDEN}}}`],
  ['with half a variable', `{"server":{"key":"${HIDDEN}\${"}}`],
  ['inside an address', `{"providers":{"webdav":{"a":{"url":"https://me:${HIDDEN}@h/"}}}}`],
  ['inside an address of another kind', `{"providers":{"webdav":{"a":{"url":"ftp://me:${HIDDEN}@h/"}}}}`],
  ['as a webhook', `{"finalization":{"hooks":[{"name":"a","webhook":"${HIDDEN}"}]}}`],
  ['in a header', `{"providers":{"http":{"a":{"url":"http://h/","headers":{"X-Token":"${HIDDEN}"}}}}}`],
])('a configuration that is refused shows no secret that stands in it %s', async (_, config) => {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'upload-server.json'), config)
  const { code, stdout, stderr } = await runCli(['config', 'validate'], {
    cwd: directory,
    env: { DEBUG: '1' },
  })
  expect(code).toBe(1)
  expect(stdout + stderr).not.toContain(core('upload'))
})
