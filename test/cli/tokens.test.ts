import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { leaveOutOnWindows } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { makeToken, REQUEST_TOKEN, startTokenSite, type TokenSiteOptions } from '../servers/token-site.ts'
import { type CliResult, runBuilt, runCli } from './run-cli.ts'

const KEY = 'key-of-the-server-0123456789'

async function start(options?: TokenSiteOptions) {
  const site = await startTokenSite(options)
  onTestFinished(() => site.close())
  return site
}

/** A folder with files that are too large to share a request. */
async function makeFiles(count = 1): Promise<{ cwd: string; files: string[] }> {
  const cwd = await makeDirectory()
  const files = Array.from({ length: count }, (_, index) => `${index}.txt`)
  for (const name of files) await writeFile(join(cwd, name), Buffer.alloc(70_000, name))
  return { cwd, files }
}

async function send(server: string, args: string[], env: Record<string, string>, count = 1) {
  const { cwd, files } = await makeFiles(count)
  const all = ['upload', '-q', '--server', server, '--retry-max-time', '10', ...args, ...files]
  // Commander reads a key from the environment of the process.
  return ('UPLOAD_SERVER_KEY' in env ? runBuilt : runCli)(all, { cwd, env })
}

/** An executable script, and the PATH on which it lies under this name. */
async function makeProgram(script: string, name = 'token.sh'): Promise<{ file: string; PATH: string }> {
  const folder = await makeDirectory()
  const file = join(folder, name)
  await writeFile(file, `#!/bin/sh\n${script}\n`)
  await chmod(file, 0o755)
  return { file, PATH: `${folder}:${process.env['PATH']}` }
}

/** What is printed holds no token, but in the line that makes GitHub hide it. */
function expectHidden({ stdout, stderr }: CliResult, ...secrets: string[]) {
  const lines = `${stdout}\n${stderr}`.split('\n').filter(line => !line.startsWith('::add-mask::'))
  for (const secret of secrets) expect(lines.join('\n')).not.toContain(secret)
  expect(lines.join('\n')).not.toMatch(/eyJ/)
}

describe('attack: what identifies a client is read on its way to another machine, over plain http', () => {
  // No such host exists, so nothing but the refusal can come first.
  const server = 'http://img.invalid'
  it.each([[[]], [['--token-from', 'github-actions']]])(
    'a token of a job is not sent with %j',
    async args => {
      const site = await start()
      const { code, stderr } = await send(server, args, site.job)
      expect(code).not.toBe(0)
      expect(stderr).toMatch(
        args.length > 0 ? /Refused to send a token of this job to img\.invalid/ : /img\.invalid/,
      )
      expect(site.asked).toEqual([])
    },
  )

  it.each([
    ['the upload key', ['--key', KEY], server],
    ['the password', [], 'http://u:pass-word-0123@img.invalid'],
    ['the token', ['--token-from', 'echo token'], server],
  ])('%s is sent with a warning', async (what, args, to) => {
    const { stderr } = await send(to, args, {})
    expect(stderr).toContain(`Warning: ${what} is sent to img.invalid over unencrypted http.`)
    expect((await send('http://127.0.0.1:1', args, {})).stderr).not.toContain('Warning')
  })
})

describe('a job of GitHub', () => {
  it.each([[[]], [['--token-from', 'github-actions']]])('uploads without a key with %j', async args => {
    const site = await start()
    const result = await send(`${site.url}/upload`, args, site.job)
    expect(result).toMatchObject({ code: 0, stdout: 'https://img.example/1-0\n' })
    expect(site.asked).toEqual([`/token?api-version=2.0&audience=${encodeURIComponent(site.url)}`])
    expect(site.uploads[0]?.headers).toMatchObject({ authorization: `Bearer ${site.issued[0]}` })
    expect(result.stderr).toBe(`::add-mask::${site.issued[0]}\n`)
  })

  it('whose token is revoked gets a new one after the 401, and parallel requests share it', async () => {
    const site = await start({ revokeAfter: 10 })
    const result = await send(site.url, [], site.job, 20)
    expect(result.code).toBe(0)
    expect(site.uploads.some(({ status }) => status === 401)).toBe(true)
    expect(site.issued).toHaveLength(2)
    expectHidden(result, ...site.issued, REQUEST_TOKEN)
  })

  it('whose issuer is an hour ahead or behind uploads all the same', async () => {
    for (const aheadS of [3600, -3600]) {
      const site = await start({ aheadS })
      expect(await send(site.url, [], site.job, 8)).toMatchObject({ code: 0 })
    }
  })

  it('a token that is refused at once is asked for once more at most, and not sent for other files', async () => {
    const site = await start()
    const result = await send(`${site.url}/elsewhere`, [], site.job, 30)
    expect(result.code).toBe(5)
    expect(site.issued.length).toBeLessThanOrEqual(2)
    expect(site.uploads.length).toBeLessThanOrEqual(8)
    expect(result.stderr).toContain('The token is wrong: [secret]')
    expect(result.stderr).toContain(`"audience" must be "${site.url}/elsewhere"`)
    expectHidden(result, ...site.issued)
  })

  it.each([
    ['--key', ['--key', KEY], {}],
    ['UPLOAD_SERVER_KEY', [], { UPLOAD_SERVER_KEY: KEY }],
  ])('sends no token beside a key in %s', async (_, args, env) => {
    const site = await start()
    expect(await send(site.url, args, { ...site.job, ...env })).toMatchObject({ code: 5 })
    expect(site.asked).toEqual([])
    expect(site.uploads[0]?.headers).toMatchObject({ 'x-upload-key': KEY })
    expect(site.uploads[0]?.headers.authorization).toBeUndefined()
  })

  it.each([
    ['a key in the URL', (url: string) => `${url}/upload?key=${KEY}`],
    ['a password in the URL', (url: string) => url.replace('//', '//me:password-of-the-proxy@')],
  ])('sends no token beside %s', async (_, spell) => {
    const site = await start()
    await send(spell(site.url), [], site.job)
    expect(site.asked).toEqual([])
  })

  it('sends the token beside a password for a reverse proxy when it is asked to', async () => {
    const site = await start()
    const server = site.url.replace('//', '//me:password-of-the-proxy@')
    expect(await send(server, ['--token-from', 'github-actions'], site.job)).toMatchObject({ code: 0 })
    expect(site.uploads[0]?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from('me:password-of-the-proxy').toString('base64')}`,
      'x-upload-key': site.issued[0],
    })
  })

  it('sends no token to where a server redirects', async () => {
    const [site, other] = [await start(), await start()]
    const redirecting = createServer(socket => {
      socket.on('error', () => {}).resume()
      const lines = `HTTP/1.1 307 Temporary Redirect\r\nLocation: ${other.url}/upload\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
      socket.end(lines)
    })
    await new Promise<void>(resolve => redirecting.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void redirecting.close())
    const { port } = redirecting.address() as { port: number }
    const result = await send(`http://127.0.0.1:${port}`, [], site.job)
    expect(result.code).toBe(1)
    expect(other.uploads).toEqual([])
    expectHidden(result, ...site.issued)
  })

  it('without the permission uploads as before, and is told of it when the server refuses', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, [], { GITHUB_ACTIONS: 'true' })
    expect(code).toBe(5)
    expect(site.uploads[0]?.headers.authorization).toBeUndefined()
    expect(stderr).toMatch(
      /--key or UPLOAD_SERVER_KEY\. GitHub gives this job no token\. Add "permissions: id-token: write"/,
    )
    const asked = await send(site.url, ['--token-from', 'github-actions'], { GITHUB_ACTIONS: 'true' })
    expect(asked.code).toBe(5)
    expect(asked.stderr).toMatch(/^0\.txt: GitHub gives this job no token\. .*A pull request from a fork/m)
    expect(site.uploads).toHaveLength(1)
  })
})

describe('the endpoint for tokens', () => {
  it('is asked again after a failure that may pass', async () => {
    const site = await start({
      endpoint(_, response, attempt) {
        if (attempt === 1) response.destroy()
        else if (attempt === 2) response.writeHead(503, { 'retry-after': '1' }).end('busy')
        else return false
        return true
      },
    })
    expect(await send(site.url, [], site.job)).toMatchObject({ code: 0 })
    expect(site.asked).toHaveLength(3)
  })

  it.each([
    ['answers nonsense', 200, '<h1>hello</h1>', /responded with 200, but without a token/],
    ['answers a list', 200, '[]', /without a token/],
    ['answers an empty token', 200, '{"value":""}', /returned no token/],
    ['answers a number', 200, '{"value":7}', /without a token/],
    ['answers a header', 200, '{"value":"a\\r\\nX-Evil: 1"}', /several lines/],
    ['answers 10 MB', 200, `{"value":"${'x'.repeat(10_000_000)}"}`, /without a token/],
    ['answers 17 KB', 200, `{"value":"${'x'.repeat(17_000)}"}`, /more than 16 KiB/],
    ['redirects', 302, '', /returned 302/],
    [
      'refuses',
      403,
      '{"message":"no way for eyJhbGciOi.eyJ4.zzz"}',
      /returned 403.*: .*no way for \[secret\].* Check/,
    ],
  ])('that %s is not asked for each file', async (_, status, body, said) => {
    const site = await start({
      endpoint(_, response) {
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body)
        return true
      },
    })
    const result = await send(site.url, [], site.job, 12)
    expect(result.code).toBe(5)
    expect(result.stderr).toMatch(said)
    expect(result.stderr).toContain('12 of 12 files failed.')
    expect(site.asked).toHaveLength(1)
    expect(site.uploads).toEqual([])
    expectHidden(result, REQUEST_TOKEN)
  })

  const sockets = { silent: () => {}, resetting: (socket: { destroy(): void }) => socket.destroy() }
  it.each([
    ['is closed', undefined, /refuses connections|ECONNREFUSED|nothing listens/],
    ['is silent', sockets.silent, /returned no token within 2 s/],
    ['resets', sockets.resetting, /Could not get a token\. 127\.0\.0\.1:\d+ can't be reached: /],
  ])('that %s ends the built program at its time limit', async (_, handle, said) => {
    const site = await start()
    let port: number = await findFreePorts(1)
    if (handle) {
      const server = createServer(socket => handle(socket.on('error', () => {})))
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      port = (server.address() as { port: number }).port
    }
    const { cwd, files } = await makeFiles(3)
    const env = { ...site.job, ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${port}/token?x=y` }
    const args = ['upload', '-q', '--server', site.url, '--retry-max-time', '1', ...files]
    const result = await runBuilt(args, { cwd, env })
    expect(result).toMatchObject({ code: 5, stdout: '' })
    expect(result.stderr).toMatch(said)
    expectHidden(result, REQUEST_TOKEN)
  })

  it('whose host is unknown is named at once', async () => {
    const site = await start()
    const env = { ...site.job, ACTIONS_ID_TOKEN_REQUEST_URL: 'https://nowhere.invalid/token?x=y' }
    const { code, stderr } = await send(site.url, [], env)
    expect(code).toBe(5)
    expect(stderr).toContain("Could not get a token. nowhere.invalid can't be reached: ")
  })
})

describe('GitLab', () => {
  it('gives a token in UPLOAD_SERVER_TOKEN', async () => {
    const site = await start()
    for (const args of [[], ['--token-from', 'gitlab']]) {
      const env = { GITLAB_CI: 'true', UPLOAD_SERVER_TOKEN: site.issue(site.url) }
      const result = await send(site.url, args, env, 3)
      expect(result).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('can not renew it, which is said when it has expired', async () => {
    const site = await start({ lifeS: -1 })
    const env = { GITLAB_CI: 'true', UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const result = await send(site.url, [], env, 3)
    expect(result.code).toBe(5)
    expect(result.stderr).toMatch(
      /The token in UPLOAD_SERVER_TOKEN expired at 20\S+ \S+ and can't be renewed\. Upload in a job of its own, or use an upload key\./,
    )
    expectHidden(result, ...site.issued)
  })

  it('without the variable is told what to add', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, ['--token-from', 'gitlab'], { GITLAB_CI: 'true' })
    expect(code).toBe(5)
    expect(stderr).toContain(`add "id_tokens" with "UPLOAD_SERVER_TOKEN" and "aud: ${site.url}" to the job.`)
    expect((await send(site.url, [], { GITLAB_CI: 'true' })).stderr).toContain('add "id_tokens"')
  })
})

describe('a program', () => {
  it.each([
    ['Buildkite', 'BUILDKITE', 'buildkite', 'buildkite-agent', 'oidc request-token --audience AUDIENCE'],
    ['CircleCI', 'CIRCLECI', 'circleci', 'circleci', 'run oidc get --claims {"aud":"AUDIENCE"}'],
  ])('of %s is found and asked as documented', async (_, variable, name, program, words) => {
    const site = await start()
    const token = site.issue(site.url)
    const { PATH, file } = await makeProgram(`echo "$*" >> "$0.args"; echo ${token}`, program)
    for (const [args, env] of [
      [[], { [variable]: 'true' }],
      [['--token-from', name], {}],
    ] as [string[], Record<string, string>][])
      expect(await send(site.url, args, { ...env, PATH })).toMatchObject({ code: 0, stderr: '' })
    const line = `${words.replace('AUDIENCE', site.url)}\n`
    expect(await readFile(`${file}.args`, 'utf8')).toBe(line + line)
  })

  it('of the provider that is missing is no reason to fail until the server asks for a token', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, [], { BUILDKITE: 'true' })
    expect(code).toBe(5)
    expect(site.uploads).toHaveLength(1)
    expect(stderr).toContain('"buildkite-agent" is not installed, or not in PATH.')
  })

  it('of the user gets the audience, its arguments and no shell, and is run again for a new token', async context => {
    leaveOutOnWindows(context, 'it runs no scripts')
    const site = await start({ lifeS: 2 })
    // A script of Node: a machine may have no curl.
    const print =
      'fetch(process.argv[1], { headers: { authorization: process.argv[2] } }).then(r => r.json()).then(b => console.log(b.value))'
    const script = `printf '%s|' "$UPLOAD_SERVER_AUDIENCE" "$@" >> "$0.args"; exec "${process.execPath}" -e '${print}' "${site.url}/token?api-version=2.0&audience=$UPLOAD_SERVER_AUDIENCE" "Bearer ${REQUEST_TOKEN}"`
    const { file } = await makeProgram(script)
    const result = await send(site.url, ['--token-from', `${file} --for  $HOME;x`], {}, 5)
    expect(result).toMatchObject({ code: 0, stderr: '' })
    const runs = (await readFile(`${file}.args`, 'utf8')).split(`${site.url}|--for|$HOME;x|`)
    expect(runs.length).toBeGreaterThan(2)
    expect(runs.join('')).toBe('')
  })

  it('in the working directory is named by a path', async () => {
    const site = await start()
    const { cwd } = await makeFiles()
    await mkdir(join(cwd, 'ci'))
    await writeFile(join(cwd, 'ci/token'), `#!/bin/sh\nprintf %s ${site.issue(site.url)}`)
    await chmod(join(cwd, 'ci/token'), 0o755)
    const args = ['upload', '-q', '--server', site.url, '--token-from', './ci/token', '0.txt']
    expect(await runCli(args, { cwd })).toMatchObject({ code: 0 })
  })

  const leaked = makeToken({ secret: 'yes' })
  it.each([
    ['prints nothing', 'true', /"[^"]+token\.sh" returned no token\./],
    ['prints an empty line', 'echo', /returned no token\./],
    ['prints two lines', `echo ${leaked}; echo ${leaked}`, /returned several lines instead of a token\./],
    ['prints 10 MB', `head -c 10000000 /dev/zero | tr '\\0' x`, /returned more than 16 KiB/],
    ['prints a sentence', 'echo please log in', /with spaces or special characters/],
    [
      'fails',
      `echo ${leaked}; echo "no: ${leaked}" >&2; exit 3`,
      /printed no token: exit code 3: no: \[secret\]\.$/m,
    ],
    [
      'fails with its token, which is not one we know, on stdout',
      'echo opaque-secret; exit 1',
      /exit code 1\.$/m,
    ],
    ['hangs', 'sleep 60', /" returned no token within 2 s/],
    ['says that it may work later', 'exit 75', /exit code 75/],
  ])('that %s is reported by the built program', async (_, script, said) => {
    const site = await start()
    const { cwd, files } = await makeFiles(6)
    const { file } = await makeProgram(`echo run >> "$0.runs"; ${script}`)
    const args = [
      'upload',
      '-q',
      '--server',
      site.url,
      '--retry-max-time',
      '1',
      '--token-from',
      file,
      ...files,
    ]
    const result = await runBuilt(args, { cwd })
    expect(result.code).toBe(5)
    expect(result.stderr).toMatch(said)
    expect(result.stderr).toContain('6 of 6 files failed.')
    expect(result.stderr).toContain(`--token-from ${file}`)
    expect(site.uploads).toEqual([])
    expectHidden(result, leaked, 'opaque-secret')
  })

  it('that is missing, or no program, is named', async () => {
    const site = await start()
    const { cwd, files } = await makeFiles(6)
    await writeFile(join(cwd, 'data'), 'text')
    for (const [from, said] of [
      ['github', /"github" is not installed, or not in PATH\. Available: github-actions, gitlab/],
      ['/nowhere/token', /"\/nowhere\/token" does not exist/],
      ['./data', /"\.\/data" can't be run: it is not a program, or is not executable/],
      ['.', /"\." can't be run/],
    ] as const) {
      const result = await runBuilt(['upload', '-q', '--server', site.url, '--token-from', from, ...files], {
        cwd,
      })
      expect(result.code).toBe(5)
      expect(result.stderr).toMatch(said)
      expect(site.uploads).toEqual([])
    }
  })
})

describe('the command line', () => {
  it.each([
    [['--token-from', 'gitlab'], {}, /--token-from requires --server/],
    [['--server', 'x', '--token-from', 'gitlab', '--key', KEY], {}, /cannot be used with --key or /],
    [
      ['--server', 'x', '--token-from', 'gitlab'],
      { UPLOAD_SERVER_KEY: KEY },
      /cannot be used with --key or UPLOAD_SERVER_KEY/,
    ],
    [['--server', `x/upload?key=${KEY}`, '--token-from', 'gitlab'], {}, /cannot be used with an upload key/],
    [['--server', 'x', '--token-from', ''], {}, /Must be one of: github-actions, .*or a program/],
    [['--server', 'x', '--token-from', 'a', '--token-from', 'b'], {}, /Must be given only once/],
  ])('%j is refused', async (args, env, said) => {
    const { cwd } = await makeFiles()
    const result = await runBuilt(['upload', ...args, '0.txt'], { cwd, env })
    expect(result.code).toBe(2)
    expect(result.stderr).toMatch(said)
    expect(result.stderr).not.toContain(KEY)
  })

  it.each([
    ['finalize', ['some-id']],
    ['markdown', ['note.md']],
  ])('%s takes it as well', async (command, names) => {
    const site = await start()
    const { cwd } = await makeFiles()
    await writeFile(join(cwd, 'note.md'), '![](a.png)\n')
    await writeFile(join(cwd, 'a.png'), makePicture())
    const from = ['--token-from', 'gitlab']
    const env = { UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const without = await runCli([command, ...from, ...names], { cwd, env })
    expect(without).toMatchObject({ code: 1, stderr: '--token-from requires --server.\n' })
    const result = await runCli([command, '--server', site.url, ...from, ...names], { cwd, env })
    expect(result.code, result.stderr).toBe(0)
    expect(site.uploads.map(({ status }) => status)).toEqual([200])
  })

  it('an upload without a server ignores the token, and does not take it for a setting', async () => {
    const { cwd } = await makeFiles()
    const providers = { local: { Default: { directory: 'here', serve: true } } }
    await writeFile(join(cwd, 'x.json'), JSON.stringify({ providers }))
    const env = { UPLOAD_SERVER_TOKEN: makeToken({}) }
    const result = await runCli(['upload', '-q', '-c', 'x.json', '0.txt'], { cwd, env })
    expect(result.code).toBe(0)
    expect(result.stderr).not.toContain('UPLOAD_SERVER_TOKEN')
  })
})
