import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { makePicture } from '../helpers/picture.ts'
import { BIN, environmentIn, spawnServer } from '../helpers/spawn-server.ts'
import { openSqlite } from '../helpers/sqlite.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { type CliOptions, type CliResult, runCli, runShell } from './run-cli.ts'

const PREFIX = 'https://img.example'

/** A working directory with two destinations that keep names, and some files. */
async function makePlace(extra: object = {}): Promise<string> {
  const cwd = await makeDirectory()
  const at = (name: string) => ({ directory: name, urlPrefix: `${PREFIX}/${name}` })
  const config = {
    default: 'local/one',
    providers: { local: { one: at('one'), two: at('two') } },
    keyTemplate: '{filename}{extname}',
    ...extra,
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  for (const name of ['a.txt', 'b.txt', 'c d.txt']) await writeFile(join(cwd, name), `content of ${name}`)
  return cwd
}

async function upload(args: string[], cwd: string, options: Partial<CliOptions> = {}): Promise<CliResult> {
  return runCli(['upload', '--quiet', ...args], { cwd, ...options })
}

const ok = (...lines: string[]) => ({ code: 0, stdout: lines.map(line => `${line}\n`).join(''), stderr: '' })

/** Every file below the folders of the two destinations, by name, with its text. */
async function stored(cwd: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const folder of ['one', 'two']) {
    const names = await readdir(join(cwd, folder)).catch(() => [])
    for (const name of names) found[`${folder}/${name}`] = await readFile(join(cwd, folder, name), 'utf8')
  }
  return found
}

describe('upload prints one link a line and nothing else', () => {
  it('for files, in their order', async () => {
    const cwd = await makePlace()
    const absolute = join(cwd, 'c d.txt')
    expect(await upload(['b.txt', absolute, './a.txt'], cwd)).toEqual(
      ok(`${PREFIX}/one/b.txt`, `${PREFIX}/one/c%20d.txt`, `${PREFIX}/one/a.txt`),
    )
    expect(await stored(cwd)).toEqual({
      'one/a.txt': 'content of a.txt',
      'one/b.txt': 'content of b.txt',
      'one/c d.txt': 'content of c d.txt',
    })
  })

  it('for many files, in their order', async () => {
    const cwd = await makePlace()
    const names = Array.from({ length: 30 }, (_, index) => `${index}.bin`)
    for (const [index, name] of names.entries())
      await writeFile(join(cwd, name), randomBytes((30 - index) * 20_000))
    expect(await upload(names, cwd)).toEqual(ok(...names.map(name => `${PREFIX}/one/${name}`)))
  })

  it('in the folder of --path, where the key template has a place for one', async () => {
    const cwd = await makePlace({ keyTemplate: '{path}/{filename}{extname}' })
    expect(await upload(['--path', 'notes/ü 1/', 'a.txt', 'b.txt'], cwd)).toEqual(
      ok(`${PREFIX}/one/notes/%C3%BC%201/a.txt`, `${PREFIX}/one/notes/%C3%BC%201/b.txt`),
    )
    expect(await readFile(join(cwd, 'one/notes/ü 1/a.txt'), 'utf8')).toBe('content of a.txt')
    for (const path of ['../x', 'x/../..', '/x', 'x\\y'])
      expect(await upload(['--path', path, 'a.txt'], cwd)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^"--path" .*\.\n$/),
      })
    const without = await upload(['--path', 'x', 'a.txt'], await makePlace())
    expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('"keyTemplate" needs {path}') })
  })

  it('for the same file twice, the same one', async () => {
    const cwd = await makePlace()
    const { code, stdout } = await upload(['a.txt', 'a.txt'], cwd)
    expect(code).toBe(0)
    expect(stdout.split('\n').slice(0, 2)).toEqual([`${PREFIX}/one/a.txt`, `${PREFIX}/one/a.txt`])
  })

  it('for an address, also one on this machine', async () => {
    const cwd = await makePlace()
    const server = createServer((_, res) => res.end('from afar'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x/remote.txt?v=1`
    expect(await upload(['a.txt', address], cwd)).toEqual(
      ok(`${PREFIX}/one/a.txt`, `${PREFIX}/one/remote.txt`),
    )
    expect((await stored(cwd))['one/remote.txt']).toBe('from afar')
  })

  it('with a warning for a picture that is empty or none, and none for the login page of one', async () => {
    const cwd = await makePlace()
    await writeFile(join(cwd, 'empty.png'), '')
    await writeFile(join(cwd, 'error.jpg'), '{"error":"not found"}')
    const server = createServer((_, res) => res.end('<!doctype html><form>'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.png`
    const { code, stdout, stderr } = await upload(['empty.png', 'error.jpg', 'a.txt', address], cwd)
    expect([code, stdout]).toEqual([
      3,
      `${PREFIX}/one/empty.png\n${PREFIX}/one/error.jpg\n${PREFIX}/one/a.txt\n`,
    ])
    expect(stderr).toContain('Warning: "empty.png" was stored, but is empty.\n')
    expect(stderr).toContain(
      'Warning: "error.jpg" was stored, but is text/plain by its bytes, not an image.\n',
    )
    expect(stderr.match(/Warning/g)).toHaveLength(2)
    expect(stderr).toContain('x.png" returned a web page instead of a file. It may require a login.')
  })

  it('for standard input, called after its type', async () => {
    const cwd = await makePlace()
    const picture = makePicture(3_000_000)
    expect(await upload(['-', 'a.txt'], cwd, { input: picture })).toEqual(
      ok(`${PREFIX}/one/file.png`, `${PREFIX}/one/a.txt`),
    )
    expect((await readFile(join(cwd, 'one/file.png'))).equals(picture)).toBe(true)
  })

  it('for standard input under the name that --name gives it', async () => {
    const cwd = await makePlace()
    expect(await upload(['-', '--name', 'notes.txt'], cwd, { input: 'x' })).toEqual(
      ok(`${PREFIX}/one/notes.txt`),
    )
  })

  it('for a name that begins with a dash', async () => {
    const cwd = await makePlace()
    await writeFile(join(cwd, '-k'), 'x')
    expect(await upload(['--', '-k'], cwd)).toEqual(ok(`${PREFIX}/one/-k.txt`))
    expect(await upload([pathToFileURL(join(cwd, 'a.txt')).href], cwd)).toEqual(ok(`${PREFIX}/one/a.txt`))
  })
})

const picture = makePicture()
const hashOf = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('upload --format', () => {
  const names = ['a.txt', 'x [1] & "2".png']

  async function inFormat(format: string): Promise<string> {
    const cwd = await makePlace()
    await writeFile(join(cwd, names[1] as string), picture)
    const { code, stdout, stderr } = await upload(
      [`./${names[0]}`, names[1] as string, '--format', format],
      cwd,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  const link = `${PREFIX}/one/x%20%5B1%5D%20%26%20_2_.png`

  it('url', async () => {
    expect(await inFormat('url')).toBe(`${PREFIX}/one/a.txt\n${link}\n`)
  })

  it('markdown', async () => {
    expect(await inFormat('markdown')).toBe(`[a.txt](${PREFIX}/one/a.txt)\n![x \\[1\\] & "2".png](${link})\n`)
  })

  it('html', async () => {
    expect(await inFormat('html')).toBe(
      `<a href="${PREFIX}/one/a.txt">a.txt</a>\n<img src="${link}" alt="x [1] &amp; &quot;2&quot;.png">\n`,
    )
  })

  it('bbcode', async () => {
    expect(await inFormat('bbcode')).toBe(`[url=${PREFIX}/one/a.txt]a.txt[/url]\n[img]${link}[/img]\n`)
  })

  it('json', async () => {
    expect(JSON.parse(await inFormat('json'))).toEqual([
      {
        name: './a.txt',
        url: `${PREFIX}/one/a.txt`,
        size: 16,
        sha256: hashOf('content of a.txt'),
        contentType: 'text/plain',
      },
      {
        ...{
          name: names[1],
          url: link,
          size: picture.length,
          sha256: hashOf(picture),
          contentType: 'image/png',
        },
        ...{ width: picture.readUInt32BE(16), height: picture.readUInt32BE(20) },
      },
    ])
  })

  it('json says what failed, too', async () => {
    const cwd = await makePlace()
    for (const format of ['json', 'ndjson']) {
      const { code, stdout } = await upload(['absent.txt', 'a.txt', '--format', format], cwd)
      expect(code).toBe(3)
      const results =
        format === 'json'
          ? JSON.parse(stdout)
          : stdout
              .trim()
              .split('\n')
              .map(line => JSON.parse(line))
      expect(results).toEqual([
        { name: 'absent.txt', error: 'the file does not exist', code: 'source_failed' },
        expect.objectContaining({ name: 'a.txt', url: `${PREFIX}/one/a.txt` }),
      ])
    }
  })

  it('anything else is refused before anything is uploaded', async () => {
    const cwd = await makePlace()
    const { code, stdout, stderr } = await upload(['a.txt', '--format', 'text'], cwd)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('Allowed choices are url, markdown, html, bbcode, json, ndjson.')
    expect(await stored(cwd)).toEqual({})
  })
})

describe('upload --destination, and --picbed with --config-name', () => {
  it.each([
    [['--picbed', 'local'], 'one'],
    [['--config-name', 'two'], 'two'],
    [['--destination', 'local'], 'one'],
    [['--destination', 'local/two'], 'two'],
    [['--destination', 'local/two', '--picbed', 'local'], 'two'],
    [['--picbed', 'local', '--config-name', 'two'], 'two'],
    [['--config-name', 'Default'], 'one'],
  ])('%j stores at %s', async (args, folder) => {
    const cwd = await makePlace()
    expect(await upload([...args, 'a.txt'], cwd)).toEqual(ok(`${PREFIX}/${folder}/a.txt`))
  })

  it.each([
    [['--picbed', 'nope'], 'Provider "nope" does not exist. Available: "local/one", "local/two".'],
    [
      ['--config-name', 'three'],
      'No provider has a destination "three". Available: "local/one", "local/two".',
    ],
    [['--picbed', 'local', '--config-name', 'three'], 'local has no destination "three".'],
  ])('%j names what exists, and stores nothing', async (args, message) => {
    const cwd = await makePlace()
    const { code, stdout, stderr } = await upload([...args, 'a.txt'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
    expect(await stored(cwd)).toEqual({})
  })
})

it.each([
  [['--destination', 'local/one', '--config-name', 'two'], 'contradicts configName "two"'],
  [['--destination', 'local/one', '--destination', 'local/one'], 'Must be given only once.'],
  [['--destination', 'local/'], '"destination" must be "provider" or "provider/configName".'],
])('upload refuses %j as wrong usage, and stores nothing', async (args, message) => {
  const cwd = await makePlace()
  const { code, stdout, stderr } = await upload([...args, 'a.txt'], cwd)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(await stored(cwd)).toEqual({})
})

describe('what upload cannot store', () => {
  it.each([
    ['"a.txt"', 'the file does not exist. Remove the quotes around the name'],
    ['~/a.txt', 'the file does not exist. The shell replaces ~ only outside of quotes'],
    ['C:\\Users\\me\\a.txt', 'the file does not exist. It is a Windows path'],
    ['htp://example.com/a.png', 'the file does not exist. URLs must begin with http:// or https://'],
    ['file://elsewhere/a.txt', 'the file does not exist'],
  ])('says what is wrong with %s', async (name, reason) => {
    const { code, stderr } = await upload([name], await makePlace())
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`${name}: ${reason}`) })
  })

  it('is named, with what to repeat, and does not stop the rest', async () => {
    const cwd = await makePlace()
    await mkdir(join(cwd, 'folder'))
    const { code, stdout, stderr } = await upload(['a.txt', "it's absent.png", 'folder', 'b.txt'], cwd)
    expect(code).toBe(3)
    expect(stdout).toBe(`${PREFIX}/one/a.txt\n${PREFIX}/one/b.txt\n`)
    const lines = stderr.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toBe("it's absent.png: the file does not exist")
    expect(lines[1]).toBe('folder: the folder contains no files')
    expect(lines[2]).toBe(
      `2 of 4 files failed. Try again: upload-server upload --quiet 'it'\\''s absent.png' folder`,
    )
  })

  it('is repeated by a line that can be copied, with the options and without a key', async () => {
    const cwd = await makePlace()
    const args = [
      '--picbed',
      'local',
      '--config-name',
      'two',
      '--format',
      'html',
      '-k',
      'hunter2',
      '--',
      '-x',
      'a.txt',
    ]
    const { code, stderr } = await upload(args, cwd)
    expect(code).toBe(3)
    const [, line = ''] = /Try again: upload-server (.+)$/m.exec(stderr) ?? []
    expect(line).toBe('upload --quiet --picbed local --config-name two --format html --key KEY -- -x')
    await writeFile(join(cwd, '-x'), 'x')
    expect((await runShell(`upload_server ${line} 2>/dev/null`, { cwd })).stdout).toBe(
      `<a href="${PREFIX}/two/-x.txt">-x</a>\n`,
    )
  })

  it('is the configuration itself', async () => {
    const cwd = await makePlace()
    await writeFile(join(cwd, '.env'), 'A=1')
    const { code, stdout, stderr } = await upload(['upload-server.json', '.env'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.match(/may not be uploaded/g)).toHaveLength(2)
  })

  it('is what is larger than limits.fileSize, standard input included', async () => {
    const cwd = await makePlace({ limits: { fileSize: '10B' } })
    await writeFile(join(cwd, 'small'), '0123456789')
    const { code, stdout, stderr } = await upload(['-', 'small', 'a.txt'], cwd, { input: '0123456789A' })
    expect(code).toBe(3)
    expect(stdout).toBe(`${PREFIX}/one/small.txt\n`)
    expect(stderr).toContain('-: The file is larger than 10 bytes')
    expect(stderr).toContain('a.txt: "a.txt" is larger than 10 bytes')
    expect(stderr).toContain('2 of 3 files failed. Try again: upload-server upload --quiet - a.txt')
  })

  it('is standard input without a byte: whatever is before the pipe has failed', async () => {
    const cwd = await makePlace()
    const { code, stdout, stderr } = await upload(['-', 'a.txt'], cwd, { input: '' })
    expect({ code, stdout }).toEqual({ code: 3, stdout: `${PREFIX}/one/a.txt\n` })
    expect(stderr).toContain('-: standard input is empty')
    expect(stderr).toContain('1 of 2 files failed. Try again: upload-server upload -')
    expect(Object.keys(await stored(cwd))).toEqual(['one/a.txt'])
    await writeFile(join(cwd, 'empty'), '')
    expect((await upload(['empty'], cwd)).code).toBe(0)
  })

  it('is an empty name: that of a variable which is not set published the whole working folder', async () => {
    const cwd = await makePlace()
    for (const args of [[''], ['a.txt', ''], ['--comment', '--compare', '', 'a.txt']])
      expect(await upload(args, cwd)).toEqual({
        code: 2,
        stdout: '',
        stderr: 'A file name is empty. Check whether a variable is unset.\n',
      })
    expect(await stored(cwd)).toEqual({})
  })

  it('is standard input twice, which can be read only once', async () => {
    const cwd = await makePlace()
    const { code, stdout, stderr } = await upload(['-', 'a.txt', '-'], cwd, { input: 'x' })
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: 'Standard input (-) can be given only once.\n',
    })
    expect(await stored(cwd)).toEqual({})
  })

  it('is the clipboard of a machine without one', async () => {
    const cwd = await makePlace()
    const { code, stdout, stderr } = await upload([], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^clipboard: .+\n1 of 1 files failed\. Try again: upload-server upload --quiet\n$/)
  })

  it('is everything when the configuration is wrong', async () => {
    const cwd = await makePlace({ limits: { fileSizes: 1 } })
    const { code, stdout, stderr } = await upload(['a.txt'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('limits.fileSizes: is not an option. Did you mean "fileSize"?')
  })

  it('is a file whose history can not be saved, because the disk is full: it said "interrupted" and nothing else', async () => {
    const cwd = await makePlace({ database: { path: 'store.db' } })
    expect(await upload(['a.txt'], cwd)).toMatchObject({ code: 0 })
    const database = openSqlite(join(cwd, 'store.db'))
    onTestFinished(() => database.close())
    database.exec("create trigger full before insert on files begin select raise(abort, 'disk is full'); end")
    const { code, stdout, stderr } = await upload(['b.txt'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^b\.txt: Could not save the history: disk is full/)
    database.exec('drop trigger full')
    expect(await upload(['b.txt'], cwd)).toMatchObject({ code: 0 })
  })

  it('is everything when the folder cannot be written, and no secret is shown', async () => {
    const cwd = await makePlace({ server: { key: 'hunter2-one' } })
    await writeFile(join(cwd, 'one'), 'a file in the place of the folder')
    const { code, stdout, stderr } = await upload(['a.txt'], cwd)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^a\.txt: .*local\/one/)
    expect(stderr).not.toContain('hunter2')
  })
})

describe('upload --github-summary', () => {
  it('appends Markdown to the file that GitHub names', async () => {
    const cwd = await makePlace()
    await writeFile(join(cwd, 'p [1].png'), makePicture())
    await writeFile(join(cwd, 'summary.md'), 'before\n')
    const env = { GITHUB_STEP_SUMMARY: join(cwd, 'summary.md') }
    const result = await upload(['p [1].png', 'absent<b>', 'a.txt', '--github-summary'], cwd, { env })
    expect(result.code).toBe(3)
    expect(result.stderr).toContain("Try again: upload-server upload --quiet --github-summary 'absent<b>'\n")
    const link = `${PREFIX}/one/p%20%5B1%5D.png`
    const image = `<a href="${link}"><img src="${link}" width="1" alt="p &#x5b;1&#x5d;.png"></a>`
    expect((await readFile(join(cwd, 'summary.md'), 'utf8')).split('\n')).toEqual([
      'before',
      '**❌ 2 of 3 stored, 1.1 KB, 1 failed**',
      '',
      '- ❌ <code>absent&#x3c;b&#x3e;</code>: the file does not exist',
      '',
      `- [<code>a.txt</code>](${PREFIX}/one/a.txt)`,
      '',
      '<table>',
      `<tr><td><code>p &#x5b;1&#x5d;.png</code> (1 × 1)<br>${image}</td></tr>`,
      '</table>',
      '',
      '',
    ])
  })

  it('uploads nothing where there is no such file', async () => {
    const cwd = await makePlace()
    const { code, stderr } = await upload(['a.txt', '--github-summary'], cwd)
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('GITHUB_STEP_SUMMARY'),
    })
    expect(await stored(cwd)).toEqual({})
  })
})

it('tells when a file expires, and one expires only if that is asked for', async () => {
  const cwd = await makeDirectory()
  const Default = { directory: 'd', urlPrefix: PREFIX, expiry: { default: 'never', max: '90d' } }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ providers: { local: { Default } } }))
  for (const name of ['a.txt', 'b.txt']) await writeFile(join(cwd, name), name)
  const told = async (...args: string[]) => (await runCli(['upload', ...args], { cwd })).stderr
  expect(await told('a.txt')).not.toContain('expires')
  expect(await told('b.txt', '--expires', '14d')).toMatch(/ s {2}expires \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n/)
})

/** Has the built program upload five files, of which four are stored and the last one is under way. */
async function leaveFifth() {
  const bucket = await startStubBucket()
  const cwd = await makePlace({ default: 's3/one', providers: { s3: { one: bucket.options } } })
  const files = ['a.txt', 'b.txt', 'c d.txt', 'd.txt', 'e.txt']
  for (const name of files) await writeFile(join(cwd, name), name)
  bucket.hold()
  const child = spawn(process.execPath, [BIN, 'upload', ...files], { cwd, env: environmentIn(cwd) })
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  // Four go out at a time.
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(4)
  bucket.letGo()
  bucket.hold()
  await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(5)
  return { cwd, files, child, output, prefix: bucket.options['urlPrefix'] }
}

it('kill -9 leaves no printed link that the history does not know', async () => {
  const { child, output } = await leaveFifth()
  child.kill('SIGKILL')
  const [stdout] = await output
  expect(stdout).toBe('')
})

describe('Ctrl-C', () => {
  it('leaves nothing half, says what was stored and what to repeat, and ends with 130', async () => {
    const { cwd, files, child, output, prefix } = await leaveFifth()
    const before = filesBelow(cwd)
    child.kill('SIGINT')
    const [stdout, stderr, [code]] = await output
    const links = files.slice(0, 4).map(name => `${prefix}/${encodeURIComponent(name)}\n`)
    expect({ code, stdout }).toEqual({ code: 130, stdout: links.join('') })
    expect(stderr.match(/: the upload was interrupted$/gm)).toHaveLength(1)
    expect(stderr).toContain(`1 of 5 files failed. Try again: upload-server upload e.txt`)
    expect(filesBelow(cwd).filter(path => !before.includes(path) && !path.includes('store.db'))).toEqual([])
  })

  it('ends reading standard input', async () => {
    const cwd = await makePlace()
    const before = filesBelow(cwd)
    const child = spawn(process.execPath, [BIN, 'upload', '-', 'a.txt'], { cwd, env: environmentIn(cwd) })
    child.stdin.on('error', () => {})
    child.stdin.write(randomBytes(3_000_000))
    const exit = once(child, 'close')
    await eventually(() => expect(filesBelow(cwd).some(path => /\/\d+$/.test(path))).toBe(true))
    child.kill('SIGINT')
    expect(await exit).toEqual([130, null])
    expect(filesBelow(cwd)).toEqual(before)
  })
})

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

describe('links to what the server hands out itself', () => {
  async function linkWith(config: object): Promise<CliResult> {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    await writeFile(join(cwd, 'a.txt'), 'x')
    return upload(['a.txt'], cwd)
  }

  const keyTemplate = '{filename}{extname}'
  const isDown = 'it is not running'
  const isUnreached = 'no upload server responds at https://i.example/up/'

  it.each([
    [{ port: 1 }, 'http://127.0.0.1:1/files/Default/a.txt\n', isDown],
    [{ host: '0.0.0.0', port: 1234 }, 'http://127.0.0.1:1234/files/Default/a.txt\n', isDown],
    [{ host: '::', port: 1 }, 'http://[::1]:1/files/Default/a.txt\n', isDown],
    [{ publicUrl: 'https://i.example/up' }, 'https://i.example/up/files/Default/a.txt\n', isUnreached],
    [{ publicUrl: 'https://i.example/up/' }, 'https://i.example/up/files/Default/a.txt\n', isUnreached],
    [{ host: '/run/upload.sock' }, 'http://localhost/files/Default/a.txt\n', isDown],
  ])('begin as configured, and are said to be dead while no server runs: %j', async (server, link, why) => {
    expect(await linkWith({ keyTemplate, server })).toEqual({
      code: 0,
      stdout: link,
      stderr: `These links work only while the server is running, and ${why}. Start it with: upload-server\n`,
    })
  })

  it('lead to the port that the server really has, while it runs', async () => {
    const other = createServer((_req, res) => void res.end('another program'))
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.txt'), 'hello')
    const env = { UPLOAD_SERVER_PORT: String(port) }
    const server = await spawnServer([], { directory: cwd, env })
    const url = await server.url
    expect(url).not.toContain(`:${port}`)
    const running = await upload(['a.txt'], cwd, { env })
    expect(running).toMatchObject({ code: 0, stderr: '' })
    expect(await (await fetch(running.stdout.trim())).text()).toBe('hello')
    expect(await runCli(['heartbeat'], { cwd, env })).toMatchObject({ code: 0, stdout: `${url} is up\n` })

    // Killed, it leaves its address behind.
    server.process.kill('SIGKILL')
    await server.exit
    const down = await upload(['a.txt'], cwd, { env })
    expect(down.stderr).toContain(isDown)
    expect(down.stdout).toContain(`http://127.0.0.1:${port}/`)
  })

  it('are said to be dead when another server answers at the address', async () => {
    const picgo = createServer((_req, res) => void res.end('{"success":true,"result":"alive"}'))
    await new Promise<void>(resolve => picgo.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void picgo.close())
    const { port } = picgo.address() as AddressInfo
    const { code, stderr } = await linkWith({ server: { port } })
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(`the server at http://127.0.0.1:${port}/ uses another database`),
    })
  })

  it('a server that was stopped leaves no address', async () => {
    const server = await spawnServer(['--port', '0'])
    const url = await server.url
    const file = join(server.directory, 'upload-server/store.db-server')
    expect(JSON.parse(await eventually(() => readFile(file, 'utf8')))).toMatchObject({ url })
    server.process.kill('SIGTERM')
    await server.exit
    expect(existsSync(file)).toBe(false)
  })

  it('a second server of the same data folder, which has ended, leaves the entry of the first', async () => {
    const first = await spawnServer(['--port', '0'])
    const url = await first.url
    const second = await spawnServer(['--port', '0'], { directory: first.directory })
    expect(await second.url).not.toBe(url)
    second.process.kill('SIGTERM')
    await second.exit
    await writeFile(join(first.directory, 'a.txt'), 'hello')
    const { stdout, stderr } = await upload(['a.txt'], first.directory)
    expect(stderr).toBe('')
    expect(await (await fetch(stdout.trim())).text()).toBe('hello')
  })

  it('do not lead to a server that runs without their destination, unless they say so', async () => {
    const server = await spawnServer(['--port', '0'])
    const [cwd, url] = [server.directory, await server.url]
    await writeFile(join(cwd, 'a.txt'), 'x')
    const local = { other: { directory: 'other', serve: true } }
    await writeFile(join(cwd, 'b.json'), JSON.stringify({ server: { port: 1 }, providers: { local } }))
    const { stdout, stderr } = await upload(['a.txt', '-c', 'b.json'], cwd)
    expect(stdout).not.toContain(url)
    expect(stderr).toContain('the running server does not have the destination "local/other"')
  })

  it('that would stay on the machine of a CI job are wrong usage', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.txt'), 'x')
    const { code, stdout, stderr } = await upload(['a.txt'], cwd, { env: { CI: 'true' } })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^The files would stay on this CI machine.* Set --server /)
    const elsewhere = await upload(['a.txt'], cwd, {
      env: { CI: 'true', UPLOAD_SERVER_PUBLIC_URL: 'https://img.example' },
    })
    expect(elsewhere.code).toBe(0)
  })

  it('work without any configuration, in the data directory', async () => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.txt'), 'x')
    const { code, stdout } = await upload(['a.txt'], cwd)
    expect(code).toBe(0)
    const [, key = ''] =
      /^http:\/\/127\.0\.0\.1:36677\/files\/Default\/(\d{4}\/\d{2}\/a-[0-9a-f]{8}\.txt)\n$/.exec(stdout) ?? []
    const data = join(cwd, 'upload-server')
    expect(await readFile(join(data, 'files', key), 'utf8')).toBe('x')
    expect(existsSync(join(data, 'files', '.upload-server'))).toBe(false)
  })
})

describe('output of the built program that cannot be written', () => {
  it.each(['head -0', 'head -1', 'true'])(
    'a reader that goes away sees no stack trace: | %s',
    async reader => {
      const cwd = await makePlace()
      const command = `{ upload_server upload -q a.txt b.txt 'c d.txt'; echo "ended with $?" >&2; } | ${reader}`
      const { stderr } = await runShell(command, { cwd })
      expect(stderr).toBe('ended with 0\n')
      expect(Object.keys(await stored(cwd))).toHaveLength(3)
    },
  )

  it('messages that nobody reads end nothing', async () => {
    const cwd = await makePlace()
    const command =
      '{ upload_server upload absent.txt a.txt 3>&1 >out; echo "ended with $?" >out2; } 2>&1 | true'
    await runShell(command, { cwd })
    expect(await readFile(join(cwd, 'out'), 'utf8')).toBe(`${PREFIX}/one/a.txt\n`)
    expect(await readFile(join(cwd, 'out2'), 'utf8')).toBe('ended with 3\n')
  })

  it('a full disk is a failure', async () => {
    const cwd = await makePlace()
    const { stderr } = await runShell('upload_server upload -q a.txt >/dev/full; echo "ended with $?" >&2', {
      cwd,
    })
    expect(stderr).toMatch(/^Could not write the output: ENOSPC.*\nended with 1\n$/)
  })
})

it('upload leaves no temporary files behind', async () => {
  const cwd = await makePlace()
  await writeFile(join(cwd, 'big.bin'), randomBytes(3_000_000))
  await upload(['big.bin', 'absent', '-'], cwd, { input: randomBytes(3_000_000) })
  const names = await readdir(cwd, { recursive: true })
  expect(names.filter(name => /^\d+$/.test(basename(name)))).toEqual([])
})

it('upload leaves no temporary file of standard input behind if the job cannot be saved', async () => {
  const cwd = await makePlace({ database: { path: 'jobs.db' } })
  expect((await upload(['a.txt'], cwd)).code).toBe(0)
  const database = openSqlite(join(cwd, 'jobs.db'))
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON uploads BEGIN SELECT RAISE(ABORT, 'no room'); END`)
  database.close()
  const { code, stdout, stderr } = await upload(['-'], cwd, { input: randomBytes(3_000_000) })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('no room')
  const names = await readdir(cwd, { recursive: true })
  expect(names.filter(name => /^\d+$/.test(basename(name)))).toEqual([])
})

it('names the configuration of the server that is to be started', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a.txt'), 'x')
  const providers = { local: { Default: { directory: 'img', serve: true } } }
  await writeFile(join(cwd, 'x.json'), JSON.stringify({ server: { port: await findFreePorts() }, providers }))
  const { code, stderr } = await upload(['-c', 'x.json', 'a.txt'], cwd)
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('Start it with: upload-server --config x.json'),
  })
})
