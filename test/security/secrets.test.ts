import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished, vi } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { ask } from '../helpers/ask.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { makeDirectory } from '../helpers/start-app.ts'

/** Found whole in every spelling that encodes what is special only; the rest of a secret is everything special. */
const core = (name: string): string => `m4rk0${name}0q9`
const mark = (name: string): string => `${core(name)}+/=%&"' \\x`
/** For places that take letters and digits only. */
const plain = (name: string): string => `${core(name)}Zz1`

const SECRETS = [
  ...[
    'upload',
    'ci',
    'file',
    'basic',
    'digest',
    's3',
    'session',
    'aws',
    'sas',
    'ftp',
    'sftp',
    'pass',
    'bearer',
  ],
  ...['cookie', 'query', 'field', 'forge', 'other', 'hook', 'hookpath', 'pg', 'guess'],
]

/** A web server that refuses everything and repeats, in its answer, all that it was told. */
async function startMirror(): Promise<{ url: string; told: string[] }> {
  const told: string[] = []
  const server = createServer(async (req, res) => {
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
    const all = { url: path, headers: req.headers, body }
    const echo = path.startsWith('/lines') ? `${lines.join('\n')}\n${path}\n${body}` : JSON.stringify(all)
    const escaped = echo.replace(/&/g, '&amp;').replace(/</g, '&lt;')
    if (path.startsWith('/redirect')) res.writeHead(302, { Location: `http://127.0.0.1:1${path}` }).end(echo)
    else if (path.startsWith('/s3'))
      res
        .writeHead(403, { 'Content-Type': 'application/xml' })
        .end(
          `<Error><Code>SignatureDoesNotMatch</Code><Message>${escaped}</Message><StringToSign>${escaped}</StringToSign></Error>`,
        )
    else res.writeHead(403, { 'X-Ms-Error-Code': 'Refused' }).end(echo)
  })
  return { url: `http://127.0.0.1:${await listenOn(server)}`, told }
}

/** A server of lines, such as FTP's, that repeats what it was told. */
async function startParrot(): Promise<number> {
  const server = createTcpServer(socket => {
    socket.on('error', () => {})
    socket.write('220 hello\r\n')
    socket.on('data', data => {
      const line = String(data).trim()
      socket.write(/^USER/.test(line) ? '331 go on\r\n' : `530 you said ${line}\r\n`)
    })
  })
  return listenOn(server)
}

/** An SSH server that takes no password. */
async function startSsh(): Promise<{ port: number; fingerprint: string }> {
  const { default: ssh2 } = await import('ssh2')
  const pair = ssh2.utils.generateKeyPairSync('ed25519')
  const server = new ssh2.Server({ hostKeys: [pair.private] }, client => {
    client.on('error', () => {}).on('authentication', attempt => attempt.reject(['password']))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const key = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64')
  const hash = createHash('sha256').update(key).digest('base64').replace('=', '')
  return { port: (server.address() as AddressInfo).port, fingerprint: `SHA256:${hash}` }
}

async function listenOn(server: ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

function configOf(mirror: string, parrot: number, ssh: { port: number; fingerprint: string }) {
  const at = (path: string) => `${mirror}${path}`
  const s3 = {
    bucket: 'b',
    region: 'r',
    addressingStyle: 'path',
    accessKeyId: 'id',
    urlPrefix: 'http://x.example',
  }
  const secrets = {
    bearer: mark('bearer'),
    cookie: plain('cookie'),
    query: mark('query'),
    field: mark('field'),
  }
  const http = {
    headers: { Authorization: 'Bearer {secret:bearer}', Cookie: 'a=b; session={secret:cookie}' },
    query: { token: '{secret:query}' },
    fields: { password: '{secret:field}' },
    secrets: { ...secrets, bearer: plain('bearer') },
  }
  return {
    server: { key: mark('upload') },
    auth: {
      keys: [
        { name: 'ci', key: '${CI_KEY}' },
        { name: 'file', key: '${file:key.txt}' },
      ],
      maxFailures: 0,
    },
    log: { level: 'trace' },
    limits: { retries: 0, deliveryTimeoutMs: 5000 },
    default: 'local/Default',
    providers: {
      local: { Default: { directory: 'stored', serve: true } },
      webdav: {
        basic: { url: at('/basic'), username: 'me', password: mark('basic') },
        lines: { url: at('/lines'), username: 'me', password: mark('basic') },
        digest: { url: at('/digest'), username: 'me', password: mark('digest'), authType: 'digest' },
      },
      s3: {
        keys: { ...s3, endpoint: at('/s3'), secretAccessKey: mark('s3'), sessionToken: plain('session') },
        signed: {
          ...s3,
          endpoint: at('/lines'),
          secretAccessKey: mark('s3'),
          url: 'presigned',
          urlPrefix: undefined,
        },
        environment: { ...s3, accessKeyId: undefined, endpoint: at('/s3') },
      },
      azure: {
        sas: {
          account: 'abc',
          container: 'pics',
          endpoint: at('/lines'),
          sasToken: `sv=2024-01-01&sig=${plain('sas')}`,
        },
        key: {
          account: 'abc',
          container: 'pics',
          endpoint: at('/lines'),
          accountKey: Buffer.from(mark('pass').padEnd(64, 'x')).toString('base64'),
        },
      },
      http: {
        json: { url: at('/json'), ...http },
        lines: { url: at('/lines'), ...http },
        redirect: { url: at('/redirect'), ...http },
      },
      ftp: {
        one: {
          host: '127.0.0.1',
          port: parrot,
          secure: 'none',
          username: 'me',
          password: plain('ftp'),
          urlPrefix: 'http://x.example',
        },
      },
      sftp: {
        one: {
          host: '127.0.0.1',
          port: ssh.port,
          username: 'me',
          password: mark('sftp'),
          hostFingerprint: ssh.fingerprint,
          urlPrefix: 'http://x.example',
        },
      },
      piclist: {
        header: { url: at('/lines'), serverKey: plain('other') },
        query: { url: at('/redirect'), serverKey: mark('other'), keyInQuery: true },
      },
      gitea: { one: { apiUrl: at('/lines/api/v1'), repo: 'o/r', token: plain('forge') } },
    },
    finalization: {
      hooks: [{ name: 'web', webhook: at(`/lines/${plain('hookpath')}`), secret: mark('hook') }],
    },
  }
}

const ENV = { CI_KEY: mark('ci'), AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: plain('aws'), DEBUG: '1' }

/** What a secret or anything made of it looks like, for a search that knows no escapes. */
function spellingsOf(name: string): string[] {
  const secret = core(name)
  const shifted = [0, 1, 2].map(shift => {
    const encoded = Buffer.from(' '.repeat(shift) + secret).toString('base64')
    return encoded.slice(shift === 0 ? 0 : 4, -4)
  })
  const hex = Buffer.from(secret).toString('hex')
  return [secret, hex, hex.toUpperCase(), ...shifted, [...secret].reverse().join('')]
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

it('no secret, and nothing made of one, leaves the process but to where it belongs', async () => {
  const directory = await makeDirectory()
  const mirror = await startMirror()
  const config = configOf(mirror.url, await startParrot(), await startSsh())
  await writeFile(join(directory, 'key.txt'), `${mark('file')}\n`)
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  await writeFile(join(directory, 'a.txt'), 'hello')
  const server = await spawnServer(['--port', '0'], { directory, env: ENV })
  const url = await vi.waitUntil(() => /Listening on ([^"]+)/.exec(server.lines.join('\n'))?.[1], 10_000)
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
  }
  for (const one of destinations) await send('POST', `/upload?${one}`, {}, body)
  for (const key of keys) {
    await send('POST', `/upload?key=${encode(key)}`, stranger, body)
    await send('POST', '/upload', { ...stranger, Authorization: `Bearer ${key}` }, body)
    await send('POST', '/upload', { ...stranger, 'X-Upload-Key': key }, '{"list":[')
    await send('DELETE', `/upload?key=${encode(key)}`, { ...stranger, Authorization: key })
    await send('GET', `/files/Default/a.txt?key=${encode(key)}`, {})
  }
  await send('GET', `/files/Default/${encode(mark('upload'))}`, {})
  await send('GET', '/', stranger)
  await send('GET', `/upload-server.sxcu?key=${encode(mark('upload'))}`, stranger)
  await send('OPTIONS', `/upload?key=${encode(mark('upload'))}`, stranger)
  expect(mirror.told.length).toBeGreaterThan(40)

  const run = async (...args: string[]) => {
    const { stdout, stderr } = await runCli(args, { cwd: directory, env: ENV })
    said.push(stdout, stderr)
  }
  await Promise.all([
    run('config', 'show'),
    run('config', 'validate'),
    run('check'),
    run('upload', 'a.txt', '--picbed', 'http', '--config-name', 'lines'),
    run(
      'upload',
      'a.txt',
      '--server',
      url,
      '--key',
      mark('upload'),
      '--picbed',
      'webdav',
      '--config-name',
      'lines',
    ),
    run('history', '--json'),
    run('finalize'),
  ])
  server.process.kill('SIGTERM')
  await server.exit
  said.push(...server.lines, server.errors())

  const everything = said.join('\n')
  const leaked = SECRETS.filter(name => spellingsOf(name).some(spelling => everything.includes(spelling)))
  expect(leaked.map(name => excerptAround(everything, spellingsOf(name)))).toEqual([])
  const made = credentialsIn(mirror.told)
  expect(made.length).toBeGreaterThan(10)
  expect(made.filter(one => everything.includes(one)).map(one => excerptAround(everything, [one]))).toEqual(
    [],
  )
})

function excerptAround(everything: string, spellings: readonly string[]): string {
  const found = spellings.find(spelling => everything.includes(spelling)) ?? ''
  const at = everything.indexOf(found)
  return everything.slice(Math.max(0, at - 150), at + found.length + 50)
}

it('the address of a database that does not answer shows no password', async () => {
  const directory = await makeDirectory()
  const url = `postgres://me:${encodeURIComponent(mark('pg'))}@127.0.0.1:1/db`
  const config = { store: { driver: 'postgres', url }, log: { level: 'trace' } }
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

it.each<[what: string, config: string]>([
  ['as a list', `{"server":{"key":["${core('upload')}"]}}`],
  ['as a number of a port', `{"server":{"port":"${core('upload')}"}}`],
  ['where there is no option', `{"server":{"token":"${core('upload')}"}}`],
  ['behind a missing quote', `{"server":{"key":"${core('upload')}}}`],
  ['with half a variable', `{"server":{"key":"${core('upload')}\${"}}`],
  ['inside an address', `{"providers":{"webdav":{"a":{"url":"https://me:${core('upload')}@h/"}}}}`],
  [
    'inside an address of another kind',
    `{"providers":{"webdav":{"a":{"url":"ftp://me:${core('upload')}@h/"}}}}`,
  ],
  [
    'as a webhook without a scheme',
    `{"finalization":{"hooks":[{"name":"a","webhook":"${core('upload')}"}]}}`,
  ],
  [
    'in an open header',
    `{"providers":{"http":{"a":{"url":"http://h/","headers":{"X-Token":"${core('upload')}"}}}}}`,
  ],
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
