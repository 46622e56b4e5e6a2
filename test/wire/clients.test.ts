import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure, expectLinks, expectNoClipboard, expectStored } from '../helpers/expect-answer.ts'
import { type Answer, formOf, post } from '../helpers/form.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, type RawPart, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

// What clients send, byte for byte, and what they need of the response. To add a client, add a row to test/fixtures/wire.json.

const SERVERS = {
  plain: shareApp(),
  keyed: shareApp({ config: { server: { key: 'k1' }, auth: { loopbackExempt: false } } }),
  alwaysOk: shareApp({ config: { compat: { alwaysOk: true } } }),
  trusting: shareApp({ config: { auth: { allowedOrigins: ['https://md.example'] } } }),
  /** Stores under the cleaned name alone, so that it can be seen. */
  bare: shareApp({ config: { keyTemplate: '{uuid}/{filename}{extname}' } }),
}

/** The header lines of a part with a picture of its own, or a part with this content. */
type Part = string | { readonly head: string; readonly content: string }

interface Sent {
  /** Default: `plain`. */
  readonly server?: keyof typeof SERVERS
  /** Default: `POST /upload`. */
  readonly to?: string
  /** `@name` stands for the lines of that name in the file. */
  readonly headers: readonly string[]
  /** Names of pictures, which are written for the row; their paths are the list of its JSON. */
  readonly paths?: readonly string[]
  /** How that JSON is written. Apple's serialisation escapes each solidus. */
  readonly escape?: 'solidus' | 'ascii'
  readonly parts?: readonly Part[]
  /** Instead of the parts: this one, so many times. */
  readonly part?: Part
  readonly times?: number
  readonly boundary?: string
  /** What stands behind the last boundary. Default: a line end. */
  readonly end?: string
  /** Instead of all of these: the body as it is. */
  readonly body?: string | Uint8Array
}

/** What the client finds. */
interface Found {
  /** Its pictures, files with these contents, no clipboard, or a failure. */
  readonly found:
    | 'its files'
    | { readonly stored: readonly (string | Buffer)[] }
    | 'no clipboard'
    | readonly [status: number, code: string]
  /** Of each file, in order. */
  readonly origins?: 'paths' | readonly string[]
  /** An expression of the name of the first one. */
  readonly fileName?: string
  /** A part of the message. */
  readonly says?: string
  /** An expression that the response has nowhere. */
  readonly without?: string
  /** What the response has. */
  readonly answer?: object
}

type Row = Sent & Found & { readonly client: string }

const WIRE = new URL('../fixtures/wire.json', import.meta.url)
const { headers: LINES, rows: ROWS } = JSON.parse(readFileSync(WIRE, 'utf8')) as {
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly rows: Readonly<Record<string, readonly Row[]>>
}

const JSON_TYPE = 'Content-Type: application/json'
const BOUNDARY = '----WebKitFormBoundaryePkpFF7tjBAqx29L'
const PICTURE_HEAD = 'Content-Disposition: form-data; name="file"; filename="a.png"\nContent-Type: image/png'

const expand = (lines: readonly string[]): string[] =>
  lines.flatMap(line => (line.startsWith('@') ? expand(LINES[line.slice(1)]!) : [line]))

function writeList(list: readonly string[], how: Sent['escape']): string {
  const json = JSON.stringify({ list })
  if (how === undefined) return json
  const escaped = json.replaceAll('/', '\\/')
  if (how === 'solidus') return escaped
  const toUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `\ufeff${escaped.replace(/[^ -~]/g, toUnit)}`
}

async function send(sent: Sent) {
  const { server = 'plain', to = 'POST /upload', paths: names = [], boundary = BOUNDARY } = sent
  const parts = sent.part === undefined ? sent.parts : Array(sent.times).fill(sent.part)
  const files = makePictures(names.length + (parts ?? []).filter(part => typeof part === 'string').length)
  const folder = names.length > 0 ? await makeDirectory() : ''
  const paths = names.map(name => join(folder, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  let next = 0
  const toRaw = (part: Part): RawPart =>
    typeof part === 'string' ? [part, files[next++]!] : [part.head, part.content]
  const whole = parts ? formBody(boundary, parts.map(toRaw), sent.end) : sent.body
  const body = names.length > 0 ? writeList(paths, sent.escape) : whole
  const request = {
    line: `${to} HTTP/1.1`,
    headers: expand(sent.headers),
    ...(body !== undefined && { body }),
  }
  return { answer: await sendUpload(SERVERS[server]().url, request), files, paths }
}

async function check(row: Omit<Row, 'client'>): Promise<void> {
  const { found, origins, fileName, says, without, answer: expected = {} } = row
  const { answer, files, paths } = await send(row)
  if (found === 'no clipboard') expectNoClipboard(answer)
  else if (found !== 'its files' && !('stored' in found)) expectFailure(answer, ...found)
  else {
    await expectStored(answer, found === 'its files' ? files : found.stored)
    // SiYuan takes the names behind the last slashes of the links.
    const last = answer.result.map(link => decodeURIComponent(link.slice(link.lastIndexOf('/') + 1)))
    expect(last).toEqual(answer.items.map(item => item.fileName))
  }
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  if (origins) expect(originsOf(answer)).toEqual(origins === 'paths' ? paths : origins)
  if (fileName) expect(answer.items[0]?.fileName).toMatch(new RegExp(fileName))
  if (says) expect(answer.message).toContain(says)
  if (without) expect(JSON.stringify(answer)).not.toMatch(new RegExp(without, 'i'))
  expect(answer).toMatchObject(expected)
}

const originsOf = (answer: Answer) => answer.items.map(item => item.origin)

describe.each(Object.entries(ROWS))('%s', (_title, rows) => {
  it.each(rows)('$client', check)
})

// What Typora sends.
it('attack: a sandboxed frame of a web page sends the same with the agent of a browser', () =>
  check({
    headers: expand([JSON_TYPE, '@typora']).map(line => line.replace(/ (?:Electron|Typora)\/\S+/g, '')),
    paths: ['typora-icon.png', 'typora-icon2.png'],
    found: [401, 'unauthorized'],
  }))

const imageKit = (name: Buffer): RawPart => [
  Buffer.concat([
    Buffer.from('Content-Disposition: form-data; name="image"; filename="'),
    name,
    Buffer.from('"\r\nContent-Type: image/png'),
  ]),
  'x',
]
const formWith = (...parts: RawPart[]) => ({ headers: ['@form'], body: formBody(BOUNDARY, parts) })
const PDF = Buffer.from('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n', 'latin1')
const WHOLE = formBody(BOUNDARY, [[PICTURE_HEAD, 'x']])
const NOTE: RawPart = ['Content-Disposition: form-data; name="note"', 'x']
const REFUSED = { found: [400, 'invalid_request'], answer: { errors: [] } } as const

// What is no text, or too large to be written down.
it.each<[string, Omit<Row, 'client'>]>([
  [
    'markdown-image-kit, its name in GBK, the default character set of its machine',
    { ...formWith(imageKit(Buffer.from('cdbcc6ac2e706e67', 'hex'))), found: { stored: ['x'] } },
  ],
  [
    'markdown-image-kit, its name in UTF-8',
    { ...formWith(imageKit(Buffer.from('图片.png'))), found: { stored: ['x'] }, origins: ['图片.png'] },
  ],
  [
    'a form with 60 text fields and a large one',
    {
      ...formWith(...Array<RawPart>(60).fill(NOTE), [NOTE[0], 'x'.repeat(200_000)], [PICTURE_HEAD, 'y']),
      found: { stored: ['y'] },
    },
  ],
  ['a form with a PDF', { ...formWith([PICTURE_HEAD, PDF]), found: { stored: [PDF] } }],
  ['a form without its end', { headers: ['@form'], body: WHOLE.subarray(0, -BOUNDARY.length), ...REFUSED }],
  [
    'a form with gzip around it',
    { headers: ['@form', 'Content-Encoding: gzip'], body: gzipSync(WHOLE), ...REFUSED },
  ],
  [
    'a form with a header of 20 kB',
    { ...formWith([PICTURE_HEAD.replace('a.png', 'n'.repeat(20_000)), 'x']), ...REFUSED },
  ],
  ['a picture labelled JSON', { headers: [JSON_TYPE], body: makePicture(), found: [400, 'invalid_request'] }],
])('%s', (_what, row) => check(row))

describe('a list', () => {
  const ask = (body: string) => sendUpload(SERVERS.plain().url, { headers: [JSON_TYPE], body })
  async function writePicture(name: string) {
    const path = join(await makeDirectory(), name)
    const file = makePicture()
    await writeFile(path, file)
    return { path, file }
  }

  it.each(['file://', 'FILE://', 'file://localhost'])('has a path behind %s', async scheme => {
    const { path, file } = await writePicture('a b.png')
    const url = pathToFileURL(path).href.replace('file://', scheme)
    await expectStored(await ask(JSON.stringify({ list: [url] })), [file])
  })

  it('stands in 12 MB of JSON', async () => {
    const { path, file } = await writePicture('a.png')
    const body = JSON.stringify({ padding: 'x'.repeat(12_000_000), list: [path] })
    await expectStored(await ask(body), [file])
  })
})

it('names survive the way through a real FormData', async () => {
  const names = ['图 片.png', '%41%.png', 'a"b.png', "c'd;e.png", 'f\\g.png', 'h\ni.png', '😀.png']
  const files = makePictures(names.length)
  const body = formOf(Object.fromEntries(names.map((name, index) => [name, files[index]!])))
  const answer = await post(`${SERVERS.plain().url}/upload`, { body })
  await expectStored(answer, files)
  // A backslash separates folders.
  expect(originsOf(answer)).toEqual(names.map(name => name.replace('f\\', '')))
})

describe('Obsidian drops the first slash of paths ("Upload all images" on Linux and macOS, from f9a9cbf on)', () => {
  const HINT = /its first "\/" is missing, or it is relative/
  /** Sends the path of a picture without its first slash, beside others that are wrong in other ways. */
  async function sendCut(config: Record<string, unknown>, query = '') {
    const app = await startApp({ config })
    const path = join(app.directory, '图片.png')
    await writeFile(path, makePicture())
    const send = (...list: string[]) =>
      sendUpload(app.url, {
        line: `POST /upload${query} HTTP/1.1`,
        headers: expand([JSON_TYPE, '@requestUrl']),
        body: JSON.stringify({ list }),
      })
    return { path, send }
  }

  it('and is told so', async () => {
    const { path, send } = await sendCut({})
    const answer = await send('', path.slice(1), path)
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toMatch(HINT)
    expect(answer.message).toContain(`"${path.slice(1, 77)}`)
  })

  it.each([
    ['who may name no paths', { sources: { path: { enabled: false } } }, ''],
    [
      'from elsewhere, even with a key',
      { server: { key: 'k1' }, auth: { loopbackExempt: false }, sources: { path: { roots: ['/'] } } },
      '?key=k1',
    ],
  ])('attack: whether it exists is not told to a caller %s', async (_who, config, query) => {
    const { path, send } = await sendCut(config, query)
    const there = await send(path.slice(1))
    const gone = await send(`${path.slice(1, -4)}.gif`)
    expectFailure(there, 400, 'invalid_request')
    expect(there.message.replace('.png', '.gif')).toBe(gone.message)
  })
})

it.each([[[]], [[3, 11, 19]]])(
  'a WeChat article exporter maps 20 addresses by index, although %j fail and answers come in another order',
  async (missing: number[]) => {
    const files = makePictures(20).map((file, index) => (missing.includes(index) ? undefined : file))
    // Holds every answer back until the next picture is asked for.
    let release: (() => void) | undefined
    let count = 0
    const web = await serve((req, res) => {
      release?.()
      const file = files[Number(new URL(req.url ?? '', 'http://localhost').searchParams.get('n'))]
      release = () => res.writeHead(file ? 200 : 404).end(file)
      count++
      if (count === files.length) release()
    })
    const list = files.map((_, index) => `${web.origin}/mmbiz_png/x/640?wx_fmt=png&n=${index}`)
    const request = { headers: expand([JSON_TYPE, '@extension']), body: JSON.stringify({ list }) }
    const answer = await sendUpload(SERVERS.plain().url, request)
    const stored = list.map((_, index) => index).filter(index => files[index] !== undefined)
    if (missing.length > 0) expectFailure(answer, 422, 'source_failed')
    expect(answer.errors?.map(error => [error.index, error.origin]) ?? []).toEqual(
      missing.map(index => [index, list[index]]),
    )
    expect(answer.items.map(item => [item.index, item.origin])).toEqual(stored.map(n => [n, list[n]]))
    expect(answer.items.every(item => item.fileName.endsWith('.png'))).toBe(true)
    const found = files.filter(file => file !== undefined)
    await expectLinks(answer.result, found)
  },
)

it('a failed file is named, and the links of the others are there: Typora prints it, dsh-plugin tells them apart', async () => {
  const folder = await makeDirectory()
  const files = makePictures(3)
  const paths = ['a.png', 'ü b.png', 'c.png'].map(name => join(folder, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  const list = [paths[0], '/gone/missing 图.png', paths[1], paths[2]]
  for (const headers of [expand(['@typora']), [JSON_TYPE, 'Authorization: Bearer left-over']]) {
    const answer = await sendUpload(SERVERS.plain().url, { headers, body: JSON.stringify({ list }) })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('/gone/missing 图.png')
    expect(answer.items).toMatchObject(paths.map(origin => ({ origin, contentType: 'image/png' })))
    expect(answer.errors.map(error => error.origin)).toEqual(['/gone/missing 图.png'])
    await expectLinks(answer.result, files)
  }
})

it('a PicList that uploads to this server finds its destination, however it is named', async () => {
  const directory = await makeDirectory()
  const local = Object.fromEntries(
    ['main', 'my blog', '我的'].map(name => [name, { directory: join(directory, name), serve: true }]),
  )
  const config = { server: { key: 'k1' }, auth: { loopbackExempt: false }, default: 'local/main' }
  const app = await startApp({ directory, config: { ...config, providers: { local } } })
  for (const [query, wanted] of [
    ['?configName=main&picbed=&key=k1', 'main'],
    ['?configName=Default&picbed=&key=k1', 'main'],
    ['?configName=&picbed=&key=k1', 'main'],
    ['?configName=Default&picbed=local&key=k1', 'main'],
    ['?configName=my+blog&picbed=local&key=k1', 'my blog'],
    ['?configName=my%20blog&key=k1', 'my blog'],
    ['?key=k1&picbed=local&configName=%E6%88%91%E7%9A%84', '我的'],
  ]) {
    const request = { line: `POST /upload${query} HTTP/1.1`, headers: expand(['@form', '@axios']) }
    const answer = await sendUpload(app.url, {
      ...request,
      body: formBody(BOUNDARY, [[PICTURE_HEAD, 'x']]),
    })
    await expectStored(answer, ['x'])
    expect(decodeURIComponent(answer.result[0]!), query).toContain(`/files/${wanted}/`)
  }
})
