import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { runCli, runShell } from './run-cli.ts'

const IN_PLACE = { keyTemplate: '{path}/{filename}{extname}' }

async function makePlace(files: Record<string, string>, config: object = IN_PLACE): Promise<string> {
  const cwd = await makeDirectory()
  const providers = { local: { Default: { directory: 'stored', urlPrefix: 'https://img.example' } } }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ providers, ...config }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content)
  }
  return cwd
}

const REPORT = { 'out/report/index.html': '<img src="img/a%20b.png">', 'out/report/img/a b.png': 'a' }

describe('a report with its pictures', () => {
  it('finds them where its folders are kept by a server', async () => {
    const app = await startApp({ config: IN_PLACE })
    const cwd = await makePlace(REPORT)
    const args = [
      'upload',
      '-q',
      '--server',
      app.url,
      '--path',
      'runs/7',
      '--keep-folders',
      '--strip-components',
      '1',
      'out',
    ]
    const { code, stdout, stderr } = await runCli(args, { cwd })
    const warning = 'Warning: "a b.png" was stored, but is text/plain by its bytes, not an image.\n'
    expect({ code, stderr }).toEqual({ code: 0, stderr: warning })
    const [page = ''] = stdout.split('\n')
    expect(page).toMatch(/\/runs\/7\/report\/index\.html$/)
    expect((await download(new URL('img/a%20b.png', page).href)).toString()).toBe('a')
  })

  it('finds them where they are kept without a server', async () => {
    const cwd = await makePlace(REPORT)
    const { code } = await runCli(['upload', '--keep-folders', 'out/**'], { cwd })
    expect(code).toBe(0)
    for (const [name, content] of Object.entries(REPORT))
      expect(await readFile(join(cwd, 'stored', name), 'utf8')).toBe(content)
  })
})

it('names of any kind go through: spaces, quotes, Chinese, line feeds, what a shell would take for its own', async () => {
  const names = [
    'a b.txt',
    `it's "quoted".txt`,
    '截图 1.txt',
    'l\n::error::ine.txt',
    '$(id) `id`.txt',
    '-v.txt',
    '[1] {a,b}*.txt',
    'a;type=x,b.txt',
    '%41#?&=+.txt',
  ]
  const app = await startApp()
  const cwd = await makePlace(Object.fromEntries(names.map(name => [`in/${name}`, name])))
  const at = ['--server', app.url, '--format', 'json']
  const asFolder = await runCli(['upload', '-q', ...at, 'in'], { cwd })
  const listed = await runShell(
    `find in -type f -print0 | sort -z | upload_server upload -q --files-from - --server ${app.url} --format json`,
    { cwd },
  )
  for (const { code, stdout } of [asFolder, listed]) {
    expect(code).toBe(0)
    const results = JSON.parse(stdout) as { name: string; url: string }[]
    expect(results.map(({ name }) => name.replace(/^in\//, '')).sort()).toEqual([...names].sort())
    for (const { name, url } of results)
      expect((await download(url)).toString()).toBe(name.replace(/^in\//, ''))
  }
})

describe('a job', () => {
  it.each<[string, string[], number, RegExp]>([
    [
      'with nothing to upload',
      ['--files-from', '-'],
      1,
      /^There is nothing to upload\. To accept that, add --allow-empty\.\n$/,
    ],
    ['that may be empty', ['--files-from', '-', '--allow-empty'], 0, /^There is nothing to upload\.\n$/],
    ['whose pattern matches nothing', ['x/*'], 1, /^x\/\*: no file matches the pattern\n/],
    [
      'whose pattern may match nothing',
      ['x/*', '--allow-empty', 'a.txt'],
      0,
      /^\[1\/1\] a\.txt {2}1 B {2}\d+\.\d s\n$/,
    ],
    ['that may fail', ['absent', '--soft-fail'], 0, /^absent: the file does not exist\n1 of 1 files failed/],
    [
      'whose list is absent',
      ['--files-from', 'x'],
      2,
      /^Could not read "x" \(--files-from\): no such file or folder\.\n$/,
    ],
    [
      'whose list is a folder',
      ['--files-from', '.'],
      2,
      /^Could not read "\." \(--files-from\): it is a directory\. To /,
    ],
    ['with an option for a server', ['a.txt', '--wait'], 2, /^--wait requires --server\.\n$/],
    ['with an unknown option', ['a.txt', '--nope'], 2, /unknown option '--nope'/],
    [
      'with a wrong time',
      ['a.txt', '--retry-max-time', '1y'],
      2,
      /Must be a time such as 90s, 10m, 1h or 30d\./,
    ],
    ['whose report has no folder to be in', ['a.txt', '--junit', 'a.txt/j.xml'], 2, /ENOTDIR|EEXIST/],
  ])('%s', async (_, args, code, said) => {
    const cwd = await makePlace({ 'a.txt': 'a', 'b.txt': 'b' })
    const result = await runCli(['upload', ...args], { cwd, input: '' })
    expect(result).toMatchObject({ code, stderr: expect.stringMatching(said) })
    if (code === 2) expect(await readdir(join(cwd, 'stored')).catch(() => [])).toEqual([])
  })
})

describe('--files-from', () => {
  it('uploads what a list names, after the arguments, in its order', async () => {
    const cwd = await makePlace({ 'a.txt': 'a', 'b.txt': 'b', '*.txt': 'c', '-': 'd' })
    const files = { lines: '\ufeff*.txt\r\n\r\nb.txt\n-', nul: '*.txt\0b.txt\0-\0' }
    for (const [name, list] of Object.entries(files)) {
      await writeFile(join(cwd, name), list)
      const { code, stdout } = await runCli(
        ['upload', '-q', 'a.txt', '--files-from', name, '--format', 'ndjson'],
        {
          cwd,
          input: 'not read',
        },
      )
      expect(code).toBe(0)
      const results = stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line))
      expect(results.map(({ name, size }) => [name, size])).toEqual([
        ['a.txt', 1],
        ['*.txt', 1],
        ['b.txt', 1],
        ['./-', 1],
      ])
    }
  })

  it('attack: a list in a cloned repository names secrets, URLs and files elsewhere', async () => {
    const cwd = await makePlace({ 'a.txt': 'a', '.git/config': 's', 'sub/.npmrc': 's', '../secret': 's' })
    const app = await startApp()
    const refused = [
      '../secret',
      join(cwd, '../secret'),
      `file://${cwd}/a.txt`,
      `${app.url}/health`,
      '.git/config',
      'sub/.npmrc',
      '{.npmrc,x}',
    ]
    await writeFile(join(cwd, 'list'), ['a.txt', ...refused].join('\n'))
    for (const to of [[], ['--server', app.url]]) {
      const args = ['upload', '-q', '--files-from', 'list', '--format', 'json', ...to]
      const { code, stdout, stderr } = await runCli(args, { cwd })
      const results = JSON.parse(stdout) as { name: string; url?: string; code?: string }[]
      expect(results.map(({ name, url }) => [name, url !== undefined])).toEqual([
        ['a.txt', true],
        ...refused.map(name => [name, false]),
      ])
      expect(results.slice(1, -1).map(one => one.code)).toEqual(
        refused.slice(1).map(() => 'source_forbidden'),
      )
      expect(code).toBe(3)
      expect(stderr).toMatch(/7 of 8 files failed\.\n$/) // no command that would name them as arguments
    }
  })

  it('reports what can be no list, and uploads nothing', async () => {
    const cwd = await makePlace({ 'a.txt': 'a' })
    const lists: [Buffer, RegExp][] = [
      [Buffer.from('\ufeffa.txt\r\n', 'utf16le'), /it is encoded in UTF-16\. Save it as UTF-8\.\n$/],
      [Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), /it is not a text file in UTF-8\.\n$/],
    ]
    for (const [list, message] of lists) {
      await writeFile(join(cwd, 'list'), list)
      const result = await runCli(['upload', 'a.txt', '--files-from', 'list'], { cwd })
      expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
    }
  })

  it('reads no more than 64 MiB', async () => {
    const cwd = await makePlace({ list: '' })
    await truncate(join(cwd, 'list'), 64 * 1024 * 1024 + 1)
    const result = await runCli(['upload', '--files-from', 'list'], { cwd })
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(/it is larger than 64 MiB\.\n$/) })
  })
})

/** Stores every file but those whose names begin with "slow", which it never answers. */
async function startHalf(): Promise<{ url: string; slow: Promise<void> }> {
  let reached = () => {}
  const slow = new Promise<void>(resolve => {
    reached = resolve
  })
  const server = createServer(async (req, res) => {
    const name = /filename="([^"]+)"/.exec(await text(req))?.[1] ?? ''
    if (name.startsWith('slow')) reached()
    else res.end(JSON.stringify({ success: true, result: [`https://img.example/${name}`] }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, slow }
}

const BIG = 'x'.repeat(70_000)

it('Ctrl-C prints what is stored behind what is not, and says what is not', async () => {
  const { url, slow } = await startHalf()
  const cwd = await makePlace({ 'slow.txt': BIG, 'b.txt': BIG, 'c.txt': BIG })
  const args = ['upload', '--server', url, '--junit', 'j.xml', 'b.txt', 'slow.txt', 'c.txt']
  const child = spawn(process.execPath, [BIN, ...args], { cwd, env: environmentIn(cwd) })
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const output = text(child.stdout)
  await Promise.all([slow, expect.poll(() => said, { timeout: 10_000 }).toContain('[2/3] ')])
  child.kill('SIGINT')
  const [code] = await once(child, 'close')
  expect({ code, stdout: await output }).toEqual({
    code: 130,
    stdout: 'https://img.example/b.txt\nhttps://img.example/c.txt\n',
  })
  expect(said).toMatch(
    /^slow\.txt: the upload was interrupted\n1 of 3 files failed\. Try again: .* slow\.txt\n$/m,
  )
  expect(await readFile(join(cwd, 'j.xml'), 'utf8')).toContain('<failure type="interrupted"')
})

it('a link is printed as soon as its turn has come', async () => {
  const { url, slow } = await startHalf()
  const cwd = await makePlace({ 'slow.txt': BIG, 'b.txt': BIG })
  const child = spawn(process.execPath, [BIN, 'upload', '--server', url, 'b.txt', 'slow.txt'], {
    cwd,
    env: environmentIn(cwd),
  })
  const [first] = await once(child.stdout, 'data')
  expect(String(first)).toBe('https://img.example/b.txt\n')
  await slow
  child.kill('SIGKILL')
  await once(child, 'close')
})
