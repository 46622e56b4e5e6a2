import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { leaveOutOnWindows } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { makeToken, REQUEST_TOKEN, startTokenSite, type TokenSiteOptions } from '../servers/token-site.ts'
import { serve, serveRaw } from '../uploader/sources/servers.ts'
import { type CliResult, runBuilt, runCli } from './run-cli.ts'

const KEY = 'key-of-the-server-0123456789'

async function start(options?: TokenSiteOptions) {
  const site = await startTokenSite(options)
  onTestFinished(() => site.close())
  return site
}

/** Uploads files that are too large to share a request. */
async function send(
  server: string,
  args: string | string[],
  env: Record<string, string>,
  count = 1,
  cwd?: string,
) {
  const folder = cwd ?? (await makeDirectory())
  const words = typeof args === 'string' ? args.split(' ').filter(Boolean) : args
  const files = Array.from({ length: count }, (_, index) => `${index}.txt`)
  for (const name of files) await writeFile(join(folder, name), Buffer.alloc(70_000, name))
  // Commander reads a key from the environment of the process.
  const run = 'UPLOAD_SERVER_KEY' in env ? runBuilt : runCli
  const retries = words.includes('--retry-max-time') ? [] : ['--retry-max-time', '10']
  return run(['upload', '-q', '--server', server, ...retries, ...words, ...files], { cwd: folder, env })
}

/** An executable script in a folder of its own. */
async function makeProgram(script: string, name = 'token.sh'): Promise<{ folder: string; file: string }> {
  const folder = await makeDirectory()
  const file = join(folder, name)
  await writeFile(file, `#!/bin/sh\n${script}\n`)
  await chmod(file, 0o755)
  return { folder, file }
}

/** What is printed holds no token, but in the line that makes GitHub hide it. */
function expectHidden({ stdout, stderr }: CliResult, ...secrets: string[]) {
  const lines = `${stdout}\n${stderr}`.replace(/^::add-mask::.*$/gm, '')
  for (const secret of secrets) expect(lines).not.toContain(secret)
  expect(lines).not.toMatch(/eyJ/)
}

describe('attack: what identifies a client is read on its way to another machine, over plain http', () => {
  // No such host exists, so nothing but the refusal can come first.
  const server = 'http://img.invalid'
  it('a token of a job is not sent', async () => {
    const site = await start()
    expect((await send(server, '', site.job)).code).not.toBe(0)
    const { code, stderr } = await send(server, '--token-from github-actions', site.job)
    expect(code).not.toBe(0)
    expect(stderr).toContain('Refused to send a token of this job to img.invalid')
    expect(site.asked).toEqual([])
  })

  it.each([
    ['the upload key', `--key ${KEY}`, server],
    ['the password', '', 'http://u:pass-word-0123@img.invalid'],
    ['the token', '--token-from echo', server],
  ])('%s is sent with a warning', async (what, args, to) => {
    const { stderr } = await send(to, args, {})
    expect(stderr).toContain(`Warning: ${what} is sent to img.invalid over unencrypted http.`)
    expect((await send('http://127.0.0.1:1', args, {})).stderr).not.toContain('Warning')
  })
})

describe('a job of GitHub', () => {
  it.each(['', '--token-from github-actions'])('uploads without a key with %j', async args => {
    const site = await start()
    const result = await send(`${site.url}/upload`, args, site.job)
    expect(result).toMatchObject({ code: 0, stdout: 'https://img.example/1-0\n' })
    expect(site.asked).toEqual([`/token?api-version=2.0&audience=${encodeURIComponent(site.url)}`])
    expect(site.uploads[0]?.headers).toMatchObject({ authorization: `Bearer ${site.issued[0]}` })
    expect(result.stderr).toBe(`::add-mask::${site.issued[0]}\n`)
  })

  it('whose token is revoked gets a new one after the 401, and parallel requests share it', async () => {
    const site = await start({ revokeAfter: 10 })
    const result = await send(site.url, '', site.job, 20)
    expect(result.code).toBe(0)
    expect(site.uploads.some(({ status }) => status === 401)).toBe(true)
    expect(site.issued).toHaveLength(2)
    expectHidden(result, ...site.issued, REQUEST_TOKEN)
  })

  it('a token that is refused at once is asked for once more at most, and not sent for other files', async () => {
    const site = await start()
    const result = await send(`${site.url}/elsewhere`, '', site.job, 30)
    expect(result.code).toBe(5)
    expect(site.issued.length).toBeLessThanOrEqual(2)
    expect(site.uploads.length).toBeLessThanOrEqual(8)
    expect(result.stderr).toContain('The token is wrong: [secret]')
    expect(result.stderr).toContain(`"audience" must be "${site.url}/elsewhere"`)
    expectHidden(result, ...site.issued)
  })

  it.each<[string, string, Record<string, string>, (url: string) => string]>([
    ['--key', `--key ${KEY}`, {}, url => url],
    ['UPLOAD_SERVER_KEY', '', { UPLOAD_SERVER_KEY: KEY }, url => url],
    ['a key in the URL', '', {}, url => `${url}/upload?key=${KEY}`],
    ['a password in the URL', '', {}, url => url.replace('//', '//me:password-of-the-proxy@')],
  ])('sends no token beside %s', async (what, args, env, spell) => {
    const site = await start()
    await send(spell(site.url), args, { ...site.job, ...env })
    expect(site.asked).toEqual([])
    if (what.includes('URL')) return
    expect(site.uploads[0]?.headers).toMatchObject({ 'x-upload-key': KEY })
    expect(site.uploads[0]?.headers.authorization).toBeUndefined()
  })

  it('sends the token beside a password for a reverse proxy when it is asked to', async () => {
    const site = await start()
    const server = site.url.replace('//', '//me:password-of-the-proxy@')
    expect(await send(server, '--token-from github-actions', site.job)).toMatchObject({ code: 0 })
    expect(site.uploads[0]?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from('me:password-of-the-proxy').toString('base64')}`,
      'x-upload-key': site.issued[0],
    })
  })

  it('sends no token to where a server redirects', async () => {
    const [site, other] = [await start(), await start()]
    const { origin } = await serve((_, res) => res.writeHead(307, { location: `${other.url}/upload` }).end())
    const result = await send(origin, '', site.job)
    expect(result.code).toBe(1)
    expect(other.uploads).toEqual([])
    expectHidden(result, ...site.issued)
  })

  it('without the permission uploads as before, and is told of it when the server refuses', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, '', { GITHUB_ACTIONS: 'true' })
    expect(code).toBe(5)
    expect(site.uploads[0]?.headers.authorization).toBeUndefined()
    expect(stderr).toMatch(
      /--key or UPLOAD_SERVER_KEY\. GitHub gives this job no token\. Add "permissions: id-token: write"/,
    )
    const asked = await send(site.url, '--token-from github-actions', { GITHUB_ACTIONS: 'true' })
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
        return attempt < 3
      },
    })
    expect(await send(site.url, '', site.job)).toMatchObject({ code: 0 })
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
    ['refuses', 403, '{"message":"no way for eyJhbGciOi.eyJ4.zzz"}', /returned 403.*: .*no way for \[secret/],
  ])('that %s is not asked for each file', async (_, status, body, said) => {
    const site = await start({
      endpoint: (_, response) =>
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body) !== undefined,
    })
    const result = await send(site.url, '', site.job, 12)
    expect(result.code).toBe(5)
    expect(result.stderr).toMatch(said)
    expect(result.stderr).toContain('12 of 12 files failed.')
    expect(site.asked).toHaveLength(1)
    expect(site.uploads).toEqual([])
    expectHidden(result, REQUEST_TOKEN)
  })

  it.each<[string, () => Promise<string>, RegExp]>([
    ['is closed', async () => `http://127.0.0.1:${await findFreePorts(1)}`, /refuses connections/],
    ['is silent', async () => (await serveRaw(() => {})).origin, /returned no token within 2 s/],
    [
      'resets',
      async () => (await serveRaw(socket => socket.destroy())).origin,
      /get a token\. 127.* can't be r/,
    ],
    [
      'has no address',
      async () => 'https://nowhere.invalid',
      /a token\. nowhere\.invalid can't be reached: /,
    ],
  ])('that %s ends the upload at its time limit', async (_, open, said) => {
    const site = await start()
    const env = { ...site.job, ACTIONS_ID_TOKEN_REQUEST_URL: `${await open()}/token?x=y` }
    const result = await send(site.url, '--retry-max-time 1', env, 3)
    expect(result).toMatchObject({ code: 5, stdout: '', stderr: expect.stringMatching(said) })
    expectHidden(result, REQUEST_TOKEN)
  })
})

describe('GitLab', () => {
  it('gives a token in UPLOAD_SERVER_TOKEN', async () => {
    const site = await start()
    for (const args of ['', '--token-from gitlab']) {
      const env = { GITLAB_CI: 'true', UPLOAD_SERVER_TOKEN: site.issue(site.url) }
      expect(await send(site.url, args, env, 3)).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('can not renew it, which is said when it has expired', async () => {
    const site = await start({ lifeS: -1 })
    const env = { GITLAB_CI: 'true', UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const result = await send(site.url, '', env, 3)
    expect(result.code).toBe(5)
    expect(result.stderr).toMatch(
      /The token in UPLOAD_SERVER_TOKEN expired at 20\S+ \S+ and can't be renewed\. Upload in a job of its own, or use an upload key\./,
    )
    expectHidden(result, ...site.issued)
  })

  it('without the variable is told what to add', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, '--token-from gitlab', { GITLAB_CI: 'true' })
    expect(code).toBe(5)
    expect(stderr).toContain(`add "id_tokens" with "UPLOAD_SERVER_TOKEN" and "aud: ${site.url}" to the job.`)
    expect((await send(site.url, '', { GITLAB_CI: 'true' })).stderr).toContain('add "id_tokens"')
  })
})

describe('a program', () => {
  it.each([
    ['Buildkite', 'BUILDKITE', 'buildkite', 'buildkite-agent', 'oidc request-token --audience AUDIENCE'],
    ['CircleCI', 'CIRCLECI', 'circleci', 'circleci', 'run oidc get --claims {"aud":"AUDIENCE"}'],
  ])('of %s is found and asked as documented', async (_, variable, name, program, words) => {
    const site = await start()
    const script = `echo "$*" >> "$0.args"; echo ${site.issue(site.url)}`
    const { folder, file } = await makeProgram(script, program)
    const PATH = `${folder}:${process.env['PATH']}`
    const sent = { code: 0, stderr: '' }
    expect(await send(site.url, '', { [variable]: 'true', PATH })).toMatchObject(sent)
    expect(await send(site.url, `--token-from ${name}`, { PATH })).toMatchObject(sent)
    const line = `${words.replace('AUDIENCE', site.url)}\n`
    expect(await readFile(`${file}.args`, 'utf8')).toBe(line + line)
  })

  it('of the provider that is missing is no reason to fail until the server asks for a token', async () => {
    const site = await start()
    const { code, stderr } = await send(site.url, '', { BUILDKITE: 'true' })
    expect(code).toBe(5)
    expect(site.uploads).toHaveLength(1)
    expect(stderr).toContain('"buildkite-agent" is not installed, or not in PATH.')
  })

  it('of the user, named by a path, gets the audience, its arguments and no shell', async context => {
    leaveOutOnWindows(context, 'it runs no scripts')
    const site = await start()
    const script = `printf '%s|' "$UPLOAD_SERVER_AUDIENCE" "$@" > "$0.args"; printf %s ${site.issue(site.url)}`
    const { folder, file } = await makeProgram(script)
    const result = await send(site.url, ['--token-from', './token.sh --for  $HOME;x'], {}, 5, folder)
    expect(result).toMatchObject({ code: 0, stderr: '' })
    expect(await readFile(`${file}.args`, 'utf8')).toBe(`${site.url}|--for|$HOME;x|`)
  })

  const leaked = makeToken({ secret: 'yes' })
  it.each([
    ['prints nothing', 'true', /"[^"]+token\.sh" returned no token\./],
    ['prints an empty line', 'echo', /returned no token\./],
    ['prints two lines', `echo ${leaked}; echo ${leaked}`, /returned several lines instead of a token\./],
    ['prints 10 MB', `head -c 10000000 /dev/zero | tr '\\0' x`, /returned more than 16 KiB/],
    ['prints a sentence', 'echo please log in', /with spaces or special characters/],
    ['fails', `echo ${leaked}; echo "no: ${leaked}" >&2; exit 3`, /token: exit code 3: no: \[secret\]\.$/m],
    ['fails with a token of another form on stdout', 'echo opaque-secret; exit 1', /exit code 1\.$/m],
    ['hangs', 'sleep 60', /" returned no token within 2 s/],
  ])('that %s is reported', async (_, script, said) => {
    const site = await start()
    const { file } = await makeProgram(script)
    const result = await send(site.url, `--retry-max-time 1 --token-from ${file}`, {}, 6)
    expect(result).toMatchObject({ code: 5, stderr: expect.stringMatching(said) })
    expect(result.stderr).toContain('6 of 6 files failed.')
    expect(result.stderr).toContain(`--token-from ${file}`)
    expect(site.uploads).toEqual([])
    expectHidden(result, leaked, 'opaque-secret')
  })

  it.each([
    ['github', /"github" is not installed, or not in PATH\. Available: github-actions, gitlab/],
    ['/nowhere/token', /"\/nowhere\/token" does not exist/],
    ['./0.txt', /"\.\/0\.txt" can't be run: it is not a program, or is not executable/],
    ['.', /"\." can't be run/],
  ])('that is missing, or no program, is named: %s', async (from, said) => {
    const site = await start()
    const result = await send(site.url, `--token-from ${from}`, {}, 6)
    expect(result).toMatchObject({ code: 5, stderr: expect.stringMatching(said) })
    expect(site.uploads).toEqual([])
  })
})

describe('the command line', () => {
  it.each<[string, Record<string, string>, RegExp]>([
    ['--token-from gitlab', {}, /--token-from requires --server/],
    [`--server x --token-from gitlab --key ${KEY}`, {}, /cannot be used with --key or /],
    ['--server x --token-from gitlab', { UPLOAD_SERVER_KEY: KEY }, /be used with --key or UPLOAD_SERVER_KEY/],
    ['--server x --token-from=', {}, /Must be one of: github-actions, .*or a program/],
    ['--server x --token-from a --token-from b', {}, /Must be given only once/],
  ])('%j is refused', async (args, env, said) => {
    const run = 'UPLOAD_SERVER_KEY' in env ? runBuilt : runCli
    const result = await run(['upload', ...args.split(' '), '0.txt'], { cwd: await makeDirectory(), env })
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(said) })
    expect(result.stderr).not.toContain(KEY)
  })

  it.each([
    ['finalize', 'some-id'],
    ['markdown', 'note.md'],
  ])('%s takes it as well', async (command, name) => {
    const site = await start()
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'note.md'), '![](a.png)\n')
    await writeFile(join(cwd, 'a.png'), makePicture())
    const env = { UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const args = [command, '--server', site.url, '--token-from', 'gitlab', name]
    const result = await runCli(args, { cwd, env })
    expect(result.code, result.stderr).toBe(0)
    expect(site.uploads.map(({ status }) => status)).toEqual([200])
  })

  it('an upload without a server ignores the token, and does not take it for a setting', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.txt'), 'a')
    const env = { UPLOAD_SERVER_TOKEN: makeToken({}) }
    const result = await runCli(['upload', '-q', 'a.txt'], { cwd, env })
    expect(result.code).toBe(0)
    expect(result.stderr).not.toContain('UPLOAD_SERVER_TOKEN')
  })
})
