import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createOutgoing, type Outgoing } from '../../src/http/proxy/outgoing.ts'
import { command } from '../../src/providers/command/index.ts'
import type { Target } from '../../src/providers/contract.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { describeProvider } from '../helpers/provider-contract.ts'
import {
  never,
  type Options,
  open as openTarget,
  openTarget as openWithout,
  problemOf,
  put as store,
} from '../helpers/target.ts'
import { startWebFolder } from '../servers/web-folder.ts'

const PICTURE = randomBytes(3000)

const open = (options: Options, outgoing?: Outgoing) => openTarget(command, options, { outgoing })

/** A script of the shell, as a file that can be run. */
async function script(folder: string, text: string, name = 'store'): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, `#!/bin/sh\nset -e\n${text}\n`)
  await chmod(path, 0o755)
  return path
}

const put = async (target: Target | Promise<Target>, key = 'a/b.png', bytes = PICTURE) =>
  store(await target, key, bytes)

describeProvider('command with a script of the shell', async () => {
  const root = await mkdtemp(join(tmpdir(), 'upload-server-command-test-'))
  const web = await startWebFolder(join(root, 'web'))
  const path = await script(
    root,
    `[ "$TOKEN" = right-token ] || { echo "refused: $TOKEN" >&2; exit 1; }
mkdir -p "$(dirname "${root}/web/$UPLOAD_OBJECT_KEY")"
new=$(mktemp ${root}/new-XXXXXX)
cat > "$new"
mv -T "$new" "${root}/web/$UPLOAD_OBJECT_KEY"`,
  )
  const options = {
    command: [path],
    url: `${web.url}{key}`,
    exists: ['sh', '-c', `test -e "${root}/web/$UPLOAD_OBJECT_KEY"`],
    remove: ['sh', '-c', `rm -f "${root}/web/$UPLOAD_OBJECT_KEY"`],
    env: { TOKEN: 'right-token' },
  }
  return {
    target: await openWithout(command, options),
    fetch: web.fetch,
    secrets: ['right-token', 'wrong-token'],
    withBadCredentials: () => openWithout(command, { ...options, env: { TOKEN: 'wrong-token' } }),
    without: { connection: 'a program has none that we would see', http: 'a program is no HTTP' },
    async close() {
      web.close()
      await rm(root, { recursive: true })
    },
  }
})

describe('a program', () => {
  it('gets the bytes as a file whose name has only the extension of a client, and which is gone afterwards', async () => {
    const folder = await makeDirectory()
    const path = await script(
      folder,
      `cp "$1" ${folder}/got; stat -c %a "$1" > ${folder}/mode; echo "$1" > ${folder}/name; echo 'https://x.example/1'`,
    )
    expect(await put(open({ command: [path, '{file}'] }), "a/it's 日本 $(x).png")).toEqual({
      url: 'https://x.example/1',
    })
    expect((await readFile(join(folder, 'got'))).equals(PICTURE)).toBe(true)
    const name = (await readFile(join(folder, 'name'), 'utf8')).trim()
    expect(await readFile(join(folder, 'mode'), 'utf8')).toBe('600\n')
    expect(name).toMatch(/\/upload-server-command-\w+\/[\da-f]{64}\.png$/)
    await expect(readFile(name)).rejects.toThrow('ENOENT')
  })

  it.each([
    ['echo working; echo "https://x.example/a b"', undefined, ': x.example/a b.'],
    ['printf "done\\nhttps://x.example/(1).png\\n\\n"', 'https://x.example/%281%29.png', ''],
    ['echo javascript:alert\\(1\\)', undefined, ': javascript:alert(1).'],
    ['echo https://x.example/1; echo bye', undefined, ': bye.'],
    ['true', undefined, 'print one.'],
  ])('that prints %j has told the link, or fails', async (text, url, shown) => {
    const target = open({ command: [await script(await makeDirectory(), `cat >/dev/null; ${text}`)] })
    if (url) expect(await put(target)).toEqual({ url })
    else {
      const { message } = await failureOf(put(target))
      expect(message).toContain('printed no URL in its last line')
      expect(message).toContain(shown)
    }
  })

  it.each([
    ['exit 75', true, 'failed with exit code 75'],
    [
      'echo "no: s3cret-t0ken https://x.example" >&2; exit 3',
      false,
      'failed with exit code 3: no: [secret] x.example',
    ],
    [
      'printf "> GET /\\n> Authorization: Basic bWU6cGFzcw==\\n> Host: x\\nno luck\\n" >&2; exit 1',
      false,
      'exit code 1: > GET / > Authorization: [hidden] > Host: x no luck',
    ],
    ['printf %s "$TOKEN"; head -c 495 /dev/zero | tr "\\0" y; exit 3', false, 'exit code 3: '], // cut in the secret
    ['kill -9 $$', false, 'it was killed by SIGKILL'],
    ['head -c 10 >/dev/null', false, 'before it had read the whole file'],
  ])('that does %j fails', async (text, retryable, words) => {
    const path = await script(await makeDirectory(), text)
    const target = open({ command: [path], url: 'https://x.example/{key}', env: { TOKEN: 's3cret-t0ken' } })
    const error = await failureOf(put(target, 'a.png', randomBytes(1024 * 1024)))
    expect(error.message).toContain(words)
    expect(error.message).not.toContain('t0ken')
    expect(error.retryable).toBe(retryable)
  })

  it('that can not be started is named', async () => {
    const folder = await makeDirectory()
    const wrong = join(folder, 'wrong')
    await writeFile(wrong, '#!/no/such/interpreter\n', { mode: 0o755 })
    for (const [program, words] of [
      ['no-such-program-here', 'is not installed'],
      [wrong, 'does not exist, or the interpreter after "#!" in its first line does not'],
      [folder, "can't be run: it is not a program, or is not executable. Check it, or run chmod +x"],
    ] as const)
      expect((await failureOf(put(open({ command: [program] })))).message).toContain(`"${program}" ${words}`)
  })

  it('whose address is the same for all files is warned of', () => {
    const warnings: string[] = []
    const deps = { name: 'one', warn: (text: string) => void warnings.push(text) }
    for (const end of ['{key}', '{sha256}.png', 'latest.png']) {
      const options = { command: ['cat'], url: `https://x.example/${end}` }
      void command.open(command.config.parse(options), deps)
    }
    expect(warnings).toEqual([expect.stringContaining('all files get the same URL')])
  })

  it('that takes too long is killed with its children', async () => {
    const folder = await makeDirectory()
    const path = await script(folder, `sleep 60 & echo $! > ${folder}/child; wait`)
    const error = await failureOf(put(open({ command: [path], timeout: '400ms' })))
    expect(error).toMatchObject({
      retryable: true,
      message: expect.stringContaining('took longer than 0.4 s'),
    })
    const child = Number(await readFile(join(folder, 'child'), 'utf8'))
    await eventually(() => expect(() => process.kill(child, 0)).toThrow('ESRCH'))
  })

  it('learns nothing of the settings of the server, nor of what else is secret there', async () => {
    process.env['UPLOAD_SERVER_KEY'] = 'key-of-the-server'
    process.env['AWS_SECRET_ACCESS_KEY'] = 'key-of-the-bucket'
    try {
      const folder = await makeDirectory()
      const path = await script(folder, `cat >/dev/null; env > ${folder}/env`)
      await put(open({ command: [path], url: 'https://x.example/{sha256}' }))
      const env = await readFile(join(folder, 'env'), 'utf8')
      expect(env).not.toContain('key-of-the')
      expect(env).toContain('PATH=')
      expect(env).toContain('UPLOAD_OBJECT_KEY=a/b.png\n')
      expect(env).toContain('UPLOAD_CONTENT_TYPE=image/png\n')
    } finally {
      delete process.env['UPLOAD_SERVER_KEY']
      delete process.env['AWS_SECRET_ACCESS_KEY']
    }
  })

  it('is told of the proxy that its destination has, in place of that of the server', async () => {
    const outgoing = createOutgoing({ proxy: 'none', noProxy: [] }, {})
    const path = await script(
      await makeDirectory(),
      'cat >/dev/null; echo "https://x.example/$https_proxy$HTTPS_PROXY"',
    )
    const { HTTPS_PROXY } = process.env
    process.env['HTTPS_PROXY'] = 'http://theirs.example'
    onTestFinished(() => {
      if (HTTPS_PROXY === undefined) delete process.env['HTTPS_PROXY']
      else process.env['HTTPS_PROXY'] = HTTPS_PROXY
    })
    expect(await put(open({ command: [path] }))).toEqual({ url: 'https://x.example/http://theirs.example' })
    expect(await put(open({ command: [path] }, outgoing))).toEqual({ url: 'https://x.example/' })
    const own = outgoing.with('socks5h://own:9')
    expect(await put(open({ command: [path] }, own))).toEqual({
      url: 'https://x.example/socks5h://own:9socks5h://own:9',
    })
  })

  it('that looks for a file and can not tell has failed', async () => {
    const target = await open({ command: ['true'], exists: ['sh', '-c', 'exit 2'] })
    expect((await failureOf(target.exists!('a', never()))).message).toContain('exit code 2')
  })

  it('attack: a key that begins with "-" is taken for an option', async () => {
    const folder = await makeDirectory()
    const rclone = await script(folder, `cat >/dev/null; echo "$#: $1" > ${folder}/got`, 'rclone')
    const options = { url: 'https://x.example/{key}' }
    await put(open({ ...options, command: [rclone, 'drive:{key}'] }), '-rf.png')
    expect(await readFile(join(folder, 'got'), 'utf8')).toBe('1: drive:-rf.png\n')
    for (const words of [['{key}'], ['--', '{key}']])
      expect(problemOf(command, { command: [rclone, ...words] })).toMatch(/run as code/)
  })
})

describe('options of command', () => {
  it.each([
    [{ command: ['sh', '-c', 'cat > /srv/{key}'] }, /run as code/],
    [{ command: ['sh', '-c', 'cat > "$1"', 'sh', '{key}'] }, /run as code/],
    [{ command: ['ssh', 'host', 'cat', '{key}'] }, /run as code/],
    [{ command: ['node', '-p', '{key}'] }, /run as code/],
    [{ command: ['php', '-r', '{key}'] }, /run as code/],
    [{ command: ['awk', '{key}'] }, /run as code/],
    [{ command: ['xargs', '-I%', '/srv/{key}'] }, /run as code/],
    [{ command: ['an-interpreter-of-tomorrow', 'x:{key}'] }, /run as code/],
    [{ command: ['tar', '-xf', '-', '--to-command={key}'] }, /run as code/],
    [{ command: ['scp', '-oProxyCommand={key}', 'x:'] }, /run as code/],
    [{ command: ['scp', '{file}', 'me@host:/srv/{key}'] }, /run as code/],
    [{ command: ['sudo', 'rclone', 'rcat', 'drive:{key}'] }, /run as code/],
    [{ command: ['rclone', 'rcat', '{key}'] }, /run as code/],
    [{ command: ['rclone', 'rcat', ':sftp,ssh={key}:a'] }, /run as code/],
    [{ command: ['rclone', '--password-command=drive:{key}', 'rcat', 'drive:a'] }, /run as code/],
    [{ command: ['true'], remove: ['sh', '-c', 'rm {key}'] }, /^"remove" would let .*, in "rm \{key\}"/],
    [{ command: ['./store'] }, /absolute path/],
    [{ command: ['{key}'] }, /must start with a program/],
    [{ command: ['rclone', '{path}'] }, /unknown placeholder "\{path\}"/],
    [{ command: ['true'], exists: ['test', '{file}'] }, /unknown placeholder "\{file\}"/],
    [{ command: ['true'], url: 'https://x.example/{file}' }, /does not support the placeholder "\{file\}"/],
    [
      { command: ['true'], url: 'https://{key}.[/' },
      /must be an http or https URL without a placeholder in its host/,
    ],
  ])('%j are refused', (options, words) => {
    expect(problemOf(command, options)).toMatch(words)
  })

  it.each([
    { command: ['rclone', 'rcat', 'drive:img/{key}'] },
    { command: ['/usr/bin/rclone', 'rcat', ':local:/srv/{key}'] },
    { command: ['C:\\Tools\\rclone.exe', 'rcat', 'my drive:{key}'] },
    { command: ['scp', '-q', '{file}', 'me@host:/srv/{sha256}'] },
    { command: ['curl', '-sS', '-F', 'file=@{file};type={contentType}', 'https://x.example/?a={size}'] },
    { command: ['sh', '-c', 'cat > "/srv/$UPLOAD_OBJECT_KEY"', 'sh', '{sha256}'] },
  ])('%j are fine', options => {
    expect(problemOf(command, { url: 'https://x.example/{key}', ...options })).toBe(undefined)
  })

  it.each([
    { command: [] },
    { command: 'rclone' },
    { command: ['x'], url: 'ftp://x' },
    { command: ['x'], env: { 'A B': 'x' } },
  ])('%j can not be read', options => {
    expect(command.config.safeParse(options).success).toBe(false)
  })
})
