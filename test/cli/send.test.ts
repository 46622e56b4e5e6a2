import { readdir, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { leaveOutOnWindows, needsLinux } from '../helpers/needs.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'
import { type CliOptions, runBuilt, runCli } from './run-cli.ts'

const KEEP_NAMES = { keyTemplate: '{filename}{extname}' }

async function makeFiles(): Promise<string> {
  const cwd = await makeDirectory()
  for (const name of ['a.txt', 'b.txt', 'ü x.txt']) await writeFile(join(cwd, name), `content of ${name}`)
  return cwd
}

async function send(server: string, args: string[], options: Partial<CliOptions> = {}) {
  const cwd = options.cwd ?? (await makeFiles())
  return runCli(['upload', '--quiet', '--retry-max-time', '0', '--server', server, ...args], {
    ...options,
    cwd,
  })
}

const linksOf = (stdout: string) => stdout.trimEnd().split('\n')

describe('upload --server', () => {
  it('has names cleaned as they are without a server', async context => {
    leaveOutOnWindows(context, 'it takes no such names')
    const app = await startApp({ config: KEEP_NAMES })
    const cwd = await makeDirectory()
    const names = ['two\nlines.txt', 'two\r\nmore.txt', 'a "quoted".txt', '100%.txt']
    for (const name of names) await writeFile(join(cwd, name), name)
    expect(await send(app.url, names, { cwd })).toMatchObject({ code: 0 })
    const providers = { local: { Default: { directory: 'here', serve: true } } }
    await writeFile(join(cwd, 'x.json'), JSON.stringify({ ...KEEP_NAMES, providers }))
    expect(await runCli(['upload', '-c', 'x.json', ...names], { cwd })).toMatchObject({ code: 0 })
    const here = (await readdir(join(cwd, 'here'))).filter(name => name.endsWith('.txt')).sort()
    expect(here).toEqual(['100%.txt', 'a _quoted_.txt', 'two__more.txt', 'two_lines.txt'])
    expect((await app.files()).map(path => basename(path)).sort()).toEqual(here)
  })

  it('keeps the order of files, addresses and standard input, and goes on after what fails', async () => {
    const app = await startApp({ config: KEEP_NAMES })
    const { origin: other } = await serve((req, res) => {
      if (req.url?.includes('absent')) res.writeHead(404)
      res.end(`from ${req.url}`)
    })
    const names = [
      `${other}/1.txt`,
      'a.txt',
      'absent.txt',
      `${other}/absent.txt`,
      '-',
      `${other}/2.txt`,
      'b.txt',
    ]
    const { code, stdout, stderr } = await send(app.url, names, { input: 'piped' })
    expect(code).toBe(3)
    const links = linksOf(stdout)
    expect(links.map(link => link.replace(/^.*\//, ''))).toEqual([
      '1.txt',
      'a.txt',
      'file.txt',
      '2.txt',
      'b.txt',
    ])
    const contents = await Promise.all(links.map(async link => (await download(link)).toString()))
    expect(contents).toEqual(['from /1.txt', 'content of a.txt', 'piped', 'from /2.txt', 'content of b.txt'])
    expect(stderr).toContain('absent.txt: the file does not exist\n')
    expect(stderr).toMatch(new RegExp(`^${other}/absent\\.txt: .*404`, 'm'))
    expect(stderr).toContain(
      `2 of 7 files failed. Try again: upload-server upload --quiet --retry-max-time 0 --server ${app.url} absent.txt ${other}/absent.txt\n`,
    )
  })
})

describe('upload --server with a key', () => {
  const KEY = 'clé 0123 ключ'
  const start = (): Promise<TestApp> =>
    startApp({ config: { ...KEEP_NAMES, server: { key: KEY }, auth: { loopbackExempt: false } } })

  it.each<[string, string[], Record<string, string>]>([
    ['as an option', ['-k', KEY], {}],
    ['in the environment', [], { UPLOAD_SERVER_KEY: KEY }],
    ['as an option before the environment', ['--key', KEY], { UPLOAD_SERVER_KEY: 'wrong' }],
  ])('the built program sends it %s', async (_, args, env) => {
    const app = await start()
    const all = ['upload', '-q', '--server', app.url, ...args, 'a.txt']
    expect(await runBuilt(all, { cwd: await makeFiles(), env })).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('upload --server of a large file', () => {
  const makeLarge = async (bytes: number): Promise<string> => {
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'large.bin'), '')
    await truncate(join(cwd, 'large.bin'), bytes)
    return cwd
  }

  it('never has it in memory', async context => {
    needsLinux(context, '/proc')
    const app = await startApp({ config: { ...KEEP_NAMES, limits: { fileSize: '1GB' } } })
    // Not maxRSS, which begins at what the process that started it had.
    const tellPeak = `import { readFileSync } from 'node:fs'
      process.on('exit', () => console.error('peak', /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status'))[1]))`
    const env = { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(tellPeak)}"` }
    const cwd = await makeLarge(128 * 1024 * 1024)
    const { code, stderr } = await runBuilt(['upload', '-q', '--server', app.url, 'large.bin'], { cwd, env })
    expect(code).toBe(0)
    const [, kib] = /^peak (\d+)$/m.exec(stderr) ?? []
    expect(Number(kib)).toBeLessThan(180 * 1024)
  })

  it.each<[string, Record<string, unknown>, number, RegExp]>([
    ['as too large', { limits: { fileSize: '1MB' } }, 1, /^large\.bin: "large\.bin" is larger than 1 MB/],
    [
      'without its key',
      { server: { key: 'right' }, auth: { loopbackExempt: false } },
      5,
      /^large\.bin: Missing or invalid upload key/,
    ],
  ])('is told why it is refused %s while it is on its way', async (_, config, exitCode, said) => {
    const app = await startApp({ config })
    const { code, stderr } = await send(app.url, ['large.bin'], { cwd: await makeLarge(60_000_000) })
    expect(code).toBe(exitCode)
    expect(stderr).toMatch(said)
  })
})

describe('upload --server to something else', () => {
  it('counts many that failed for one reason, and repeats no line that no shell takes', async () => {
    const names = Array.from({ length: 900 }, (_, n) => `not-there-${n}.txt`)
    const { stderr } = await send('http://127.0.0.1:9/', names)
    expect(stderr).toBe('not-there-0.txt and 899 others: the file does not exist\n900 of 900 files failed.\n')
  })

  it('says that nobody is there', async () => {
    const closed = `http://127.0.0.1:${await findFreePorts()}`
    const args = ['upload', '--quiet', '--retry-max-time', '0', '--server', closed, 'a.txt', 'b.txt']
    const { code, stdout, stderr } = await runBuilt(args, { cwd: await makeFiles() })
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    expect(stderr).toMatch(
      /^a\.txt: 127\.0\.0\.1:\d+ can't be reached: it refuses connections\. Start the server/,
    )
    expect(stderr).toMatch(
      /2 of 2 files failed\. Try again: upload-server upload --quiet --retry-max-time 0 --server .* a\.txt b\.txt/,
    )
  })

  const PICGO = { code: 0, stdout: 'https://x/1\nhttps://x/2\n', stderr: '' }
  it.each<[string, number, string, object | RegExp]>([
    ['a PicGo', 200, '{"success":true,"result":["https://x/1","https://x/2"]}', PICGO],
    [
      'a PicGo that lost one',
      200,
      '{"success":true,"result":["https://x/1"]}',
      /^a\.txt: .* 1 instead of 2 links/,
    ],
    ['a PicGo that failed', 200, '{"success":false,"message":"no"}', /^a\.txt: no\nb\.txt: no\n2 of 2 files/],
    ['odd JSON', 200, '{"success":true,"result":"https://x/1"}', /no link for this file/],
    ['null', 200, 'null', /which is not the response of an upload server/],
    [
      'a page',
      502,
      '<h1>Bad Gateway</h1>',
      /responded with 502, which is not the response of an upload server/,
    ],
    ['a proxy with a limit', 413, '<h1>Too Large</h1>', /rejected the request as too large \(413\)/],
  ])('makes the best of %s', async (_, status, body, expected) => {
    const { origin: url } = await serve((req, res) => {
      req.resume().on('end', () => res.writeHead(status).end(body))
    })
    const result = await send(url, ['a.txt', 'b.txt'])
    if (!(expected instanceof RegExp)) return expect(result).toEqual(expected)
    expect(result).toMatchObject({ code: status === 502 ? 4 : 1, stdout: '' })
    expect(result.stderr).toMatch(expected)
  })

  it('survives a server that hangs up', async () => {
    const { origin: url } = await serve(req => req.socket.destroy())
    const { code, stdout, stderr } = await send(url, ['a.txt'])
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    expect(stderr).toContain("can't be reached")
  })
})
