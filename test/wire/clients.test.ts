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

// What clients send, byte for byte, and what they need of the response. To add a client, add a row.

const SERVERS = {
  plain: shareApp(),
  keyed: shareApp({ config: { server: { key: 'k1' }, auth: { loopbackExempt: false } } }),
  alwaysOk: shareApp({ config: { compat: { alwaysOk: true } } }),
  trusting: shareApp({ config: { auth: { allowedOrigins: ['https://md.example'] } } }),
  /** Stores under the cleaned name alone, so that it can be seen. */
  bare: shareApp({ config: { keyTemplate: '{uuid}/{filename}{extname}' } }),
}

interface Sent {
  /** Default: `plain`. */
  readonly server?: keyof typeof SERVERS
  /** Default: `POST /upload`. */
  readonly to?: string
  readonly headers: readonly string[]
  /** Names of pictures, which are written for the row; their paths are the list of its JSON. */
  readonly paths?: readonly string[]
  /** Makes the JSON of the paths. Default: `{"list":[…]}`. */
  readonly write?: (paths: readonly string[]) => string
  /** The header lines of each part of a form, which has a picture. */
  readonly parts?: readonly RawPart[0][]
  readonly boundary?: string
  /** What stands behind the last boundary. Default: a line end. */
  readonly end?: string
  /** Neither: the body as it is. */
  readonly body?: string | Buffer
}

/** What the client finds: its pictures, files with these contents, no clipboard, or a failure. */
type Found =
  | 'its files'
  | { readonly stored: readonly (string | Buffer)[] }
  | 'no clipboard'
  | readonly [status: number, code: string]
type Row = readonly [
  client: string,
  sent: Sent,
  found: Found,
  check?: (answer: Answer, paths: readonly string[]) => void,
]

/** Sends what a row says. @returns the answer, and what was sent */
async function send({ server = 'plain', to = 'POST /upload', headers, ...sent }: Sent) {
  const { url } = SERVERS[server]()
  const { paths: names = [], parts = [], boundary = BOUNDARY } = sent
  const files = makePictures(names.length + parts.length)
  const folder = names.length > 0 ? await makeDirectory() : ''
  const paths = names.map(name => join(folder, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  const write = sent.write ?? (list => JSON.stringify({ list }))
  const form = () =>
    formBody(
      boundary,
      parts.map((head, index): RawPart => [head, files[index]!]),
      sent.end,
    )
  const body = parts.length > 0 ? form() : names.length > 0 ? write(paths) : sent.body
  const request = { line: `${to} HTTP/1.1`, headers, ...(body !== undefined && { body }) }
  return { answer: await sendUpload(url, request), files, paths }
}

function describeRows(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    it.for(rows)('%s', async ([, sent, found, check]) => {
      const { answer, files, paths } = await send(sent)
      if (found === 'its files') await expectStored(answer, files)
      else if (found === 'no clipboard') expectNoClipboard(answer)
      else if ('stored' in found) await expectStored(answer, found.stored)
      else expectFailure(answer, ...found)
      check?.(answer, paths)
    })
  })
}

const JSON_TYPE = 'Content-Type: application/json'
const TEXT_TYPE = 'Content-Type: text/plain;charset=UTF-8'
const BOUNDARY = '----WebKitFormBoundaryePkpFF7tjBAqx29L'
const form = (boundary = BOUNDARY) => `Content-Type: multipart/form-data; boundary=${boundary}`
const browserPart = (field: string, name: string, type = 'image/png') =>
  `Content-Disposition: form-data; name="${field}"; filename="${name}"\nContent-Type: ${type}`

const FETCH = ['Accept: */*', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty']
const CHROME =
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36'
/** What Chromium adds to fetch and XMLHttpRequest from a page of that origin. */
const page = (origin: string) => ['Connection: keep-alive', CHROME, `Origin: ${origin}`, ...FETCH]
const EXTENSION = page('chrome-extension://dhdgffkkebhmkfjojejmpbldmpobfkfo')

const OBSIDIAN_AGENT =
  'User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) obsidian/1.8.9 Chrome/132.0.6834.210 Electron/34.3.0 Safari/537.36'
/** Obsidian's requestUrl: sent by the main process, so without an origin. */
const REQUEST_URL = [
  ...['Connection: keep-alive', OBSIDIAN_AGENT, 'Accept-Encoding: gzip, deflate, br, zstd'],
  ...['Accept-Language: zh-CN', 'Sec-Fetch-Site: none', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: empty'],
]
/** fetch in the window of Obsidian. */
const OBSIDIAN_WINDOW = ['Connection: keep-alive', OBSIDIAN_AGENT, 'Origin: app://obsidian.md', ...FETCH]
/** A part as the "remote" mode of Image auto upload writes it, quotes not escaped, the type always the same. */
const remotePart = (name: string) => browserPart('list', name, 'application/octet-stream')

/** fetch from a file page of an Electron program. */
const TYPORA = [
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Typora/1.9.5 Chrome/118.0.5993.159 Electron/27.3.11 Safari/537.36',
  ...['Origin: null', ...FETCH, 'Accept-Encoding: gzip, deflate, br'],
]
/** CFNetwork, the stack of Typora for macOS. */
const TYPORA_MAC = [
  ...[JSON_TYPE, 'Accept: */*', 'User-Agent: Typora/7090 CFNetwork/1490.0.4 Darwin/23.2.0'],
  ...['Accept-Language: zh-CN,zh-Hans;q=0.9', 'Accept-Encoding: gzip, deflate', 'Connection: keep-alive'],
]
/** JSON as Apple's serialisation writes it. */
const escapeSolidus = (list: readonly string[]) => JSON.stringify({ list }).replaceAll('/', '\\/')
const toAscii = (json: string) =>
  json.replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

const AXIOS = [
  ...['Accept: application/json, text/plain, */*', 'User-Agent: axios/1.13.2'],
  ...['Accept-Encoding: gzip, compress, deflate, br', 'Connection: keep-alive'],
]
const AXIOS_JSON = [JSON_TYPE, ...AXIOS]
/** The form-data package, which escapes nothing. */
const FORM_DATA = '--------------------------418623908437592180467321'
const formDataPart = (name: string) => browserPart('file', name)
const WINUI = [
  ...['Content-Type: application/json; charset=utf-8', 'Authorization: Bearer k1', 'X-PicGo-Secret: k1'],
  'traceparent: 00-3f2b0c1d6a5e4f708192a3b4c5d6e7f8-0102030405060708-00',
]

const origins = (answer: Answer) => answer.items.map(item => item.origin)
const keepsPaths: Row[3] = (answer, paths) => expect(origins(answer)).toEqual(paths)
const keepsNames =
  (...names: string[]): Row[3] =>
  answer =>
    expect(origins(answer)).toEqual(names)
const isReadable: Row[3] = answer => expect(answer.headers.get('access-control-allow-origin')).toBe('*')
const hasNoAddress: Row[3] = answer => expect(JSON.stringify(answer)).not.toMatch(/http/i)
const isPng: Row[3] = answer => expect(answer.items[0]?.fileName).toMatch(/\.png$/)

const ICONS = ['typora-icon.png', 'typora-icon2.png']

describeRows('Typora', [
  ...[JSON_TYPE, TEXT_TYPE].map(
    (type): Row => [
      `validates with two icons, ${type}`,
      { headers: [type, ...TYPORA], paths: ICONS },
      'its files',
      isReadable,
    ],
  ),
  [
    'attack: a sandboxed frame of a web page sends the same with the agent of a browser',
    { headers: TYPORA.map(line => line.replace(/ (?:Electron|Typora)\/\S+/g, '')), paths: ICONS },
    [401, 'unauthorized'],
  ],
  [
    'on macOS escapes every solidus of its JSON',
    { headers: TYPORA_MAC, paths: ICONS, write: escapeSolidus },
    'its files',
    keepsPaths,
  ],
  [
    'on macOS may write every other character than ASCII as an escape',
    { headers: TYPORA_MAC, paths: ['图片 😀.png'], write: list => `\ufeff${toAscii(escapeSolidus(list))}` },
    'its files',
    keepsPaths,
  ],
])

const PHONE = { server: 'keyed', to: 'POST /upload?key=k1' } as const
const ODD_NAMES = ['图片 1.png', 'Pasted image 20240101.png', '100%41.png', `quote"'.png`, '😀#?&.png', 'x']

describeRows('Obsidian', [
  [
    'Image auto upload, local mode: as many links as the note has pictures, in their order',
    { headers: [JSON_TYPE, ...REQUEST_URL], paths: ODD_NAMES },
    'its files',
    keepsPaths,
  ],
  [
    'Image auto upload is shown the message where the server answers failures with 200, since it hides that of a 4xx',
    { server: 'alwaysOk', headers: [JSON_TYPE, ...REQUEST_URL], body: '{"list":["/nowhere/gone.png"]}' },
    [200, 'source_failed'],
    answer => {
      expect(answer.msg).toContain('/nowhere/gone.png')
      expect(answer).not.toHaveProperty('result')
    },
  ],
  ['Image auto upload, the clipboard, without a length', { headers: REQUEST_URL }, 'no clipboard'],
  [
    'Image auto upload, the clipboard, with a length of 0',
    { headers: REQUEST_URL, body: '' },
    'no clipboard',
  ],
  [
    'Image auto upload, remote mode: pasted pictures that all have the name of the current millisecond',
    { headers: [form(), ...REQUEST_URL], parts: Array(5).fill(remotePart('1718000000123.png')) },
    'its files',
    answer => {
      expect(new Set(answer.result).size).toBe(5)
      expect(new Set(answer.items.map(item => item.contentType))).toEqual(new Set(['image/png']))
    },
  ],
  ...(
    [
      ['C:\\Users\\小明\\My Pictures\\截图 (1).png', '截图 (1).png'],
      ['/home/me/notes/a/photo.png', 'photo.png'],
      ['/home/me/my "best" photo.png', 'my "best" photo.png'],
      ['\\\\nas\\share\\x.png', 'x.png'],
    ] as const
  ).map(
    ([path, name]): Row => [
      `Image auto upload, remote mode: the last component of a dropped file, ${path}`,
      { headers: [form(), ...REQUEST_URL], parts: [remotePart(path)] },
      'its files',
      answer => {
        expect(origins(answer)).toEqual([name])
        expect(answer.items[0]?.fileName).not.toMatch(/Users|home|nas/)
      },
    ],
  ),
  [
    'works from a phone, with the key in the address',
    { ...PHONE, headers: [form(), 'User-Agent: okhttp/4.12.0'], parts: [remotePart('1718000000123.png')] },
    'its files',
  ],
  ...['/home/me/vault/图片.png', '图片.png'].map(
    (name): Row => [
      `its window reads the answer across origins: ${name}`,
      { headers: [form(), ...OBSIDIAN_WINDOW], parts: [browserPart('list', name)] },
      'its files',
      isReadable,
    ],
  ),
  [
    'its window reads a failure across origins',
    { headers: [form(), ...OBSIDIAN_WINDOW], body: formBody(BOUNDARY, []) },
    [400, 'no_file'],
  ],
  [
    'zpic: a form with the true type',
    {
      server: 'alwaysOk',
      headers: [form(), ...REQUEST_URL],
      parts: [0, 1].map(n => browserPart('list', `一_二 ${n}.png`)),
    },
    'its files',
  ],
  [
    'zpic: status 200 with "msg" for what failed',
    { server: 'alwaysOk', headers: [JSON_TYPE, ...REQUEST_URL], body: '{"list":["relative.png"]}' },
    [200, 'invalid_request'],
    answer => expect(answer.msg).toContain('relative.png'),
  ],
  ['a probe', { headers: [JSON_TYPE, ...REQUEST_URL], body: '{"list":[]}' }, 'no clipboard'],
])

const SIYUAN = page('http://127.0.0.1:6806')

describeRows('other programs for notes', [
  [
    'SiYuan takes the names behind the last slashes of the links',
    { headers: [JSON_TYPE, 'User-Agent: Terwer/PicGo', ...SIYUAN], paths: ['思源 1.png', 'b.png', 'c.png'] },
    'its files',
    ({ result, items }) =>
      expect(result.map(link => decodeURIComponent(link.slice(link.lastIndexOf('/') + 1)))).toEqual(
        items.map(item => item.fileName),
      ),
  ],
  [
    'SiYuan names JSON as the type of no body, without a length',
    { headers: [JSON_TYPE, ...SIYUAN] },
    'no clipboard',
  ],
  [
    'SiYuan names JSON as the type of no body, with a length of 0',
    { headers: [JSON_TYPE, ...SIYUAN], body: '' },
    'no clipboard',
  ],
  ...(
    [
      ['SiYuan, in its mode for a remote PicList', '?status=200&key=k1', 200],
      ['Yank Note 3.90, as soon as the address holds "key="', '?key=k1', 400],
    ] as const
  ).flatMap(([program, query, status]): Row[] => {
    const sent = {
      server: 'keyed',
      to: `POST /upload${query}`,
      headers: [form(), 'Sec-Fetch-Mode: cors'],
    } as const
    return [
      [program, { ...sent, parts: [browserPart('file', '图 1.png')] }, 'its files'],
      [`${program}, without a file`, { ...sent, body: formBody(BOUNDARY, []) }, [status, 'no_file']],
    ]
  }),
  ...['lsp://logseq.io', 'lsp://logseq.com'].map(
    (origin): Row => [
      `Logseq sends JSON as text from ${origin}`,
      { headers: [TEXT_TYPE, ...page(origin)], paths: ['image_1718.png'] },
      'its files',
      isReadable,
    ],
  ),
  ['Memocast sends JSON by axios', { headers: AXIOS_JSON, paths: ['a.png', 'b.png'] }, 'its files'],
  [
    'a WinUI editor keeps "/upload/" as typed and counts the links',
    { to: 'POST /upload/?key=k1&secret=k1', headers: WINUI, paths: ['1.png', '2.png', '3.png'] },
    'its files',
  ],
  [
    'a WinUI editor on another machine is told about every Windows path',
    {
      to: 'POST /upload/',
      headers: WINUI,
      body: JSON.stringify({ list: ['C:\\Users\\me\\图.png', 'D:/pics/b.png', '\\\\nas\\share\\c.png'] }),
    },
    [422, 'source_failed'],
    answer =>
      expect(answer.errors.map(error => error.origin)).toEqual([
        ...['C:\\Users\\me\\图.png', 'D:/pics/b.png', '\\\\nas\\share\\c.png'],
      ]),
  ],
  ...['k1', 'other'].map(
    (secret): Row => [
      `markra sends the secret four ways at once: ${secret}`,
      {
        server: 'keyed',
        to: `POST /upload?secret=${secret}&key=${secret}`,
        headers: [
          ...[`authorization: Bearer ${secret}`, `x-picgo-secret: ${secret}`, 'accept: */*'],
          'content-type: multipart/form-data; boundary=5c1f0b7e2a9d4c38-1b2c3d4e5f607182-93a4b5c6d7e8f901-2a3b4c5d6e7f8091',
        ],
        boundary: '5c1f0b7e2a9d4c38-1b2c3d4e5f607182-93a4b5c6d7e8f901-2a3b4c5d6e7f8091',
        parts: [browserPart('files', 'image.png')],
      },
      secret === 'k1' ? 'its files' : [401, 'unauthorized'],
    ],
  ),
  ...(
    [
      ['a web editor like Typora', 'files', 'image.png', 'http://localhost:5173'],
      ['a Markdown writer', 'list[]', '截图.png', 'http://127.0.0.1:8080'],
      ['a gallery', 'list', 'a%22b.png', 'http://localhost:3000'],
      ['a document importer', 'file', 'img-3.png', 'tauri://localhost'],
      ['a page of IPv6', 'list', 'image.png', 'http://[::1]:3000'],
      ['a page with TLS', 'list', 'image.png', 'https://localhost'],
    ] as const
  ).flatMap(([client, field, name, origin]): Row[] => [
    [
      `${client} sends a form`,
      { headers: [form(), ...page(origin)], parts: Array(2).fill(browserPart(field, name)) },
      'its files',
      isReadable,
    ],
    [
      `${client} sends JSON as text`,
      { headers: [TEXT_TYPE, ...page(origin)], paths: ['a.png'] },
      'its files',
    ],
  ]),
  [
    'a gallery asks with "{}"',
    { headers: [JSON_TYPE, ...page('http://localhost:3000')], body: '{}' },
    'no clipboard',
  ],
  ...['tauri://localhost', 'http://tauri.localhost', 'https://tauri.localhost'].map(
    (origin): Row => [
      `a Tauri editor at ${origin} posts nothing for the clipboard`,
      { headers: page(origin), body: '' },
      'no clipboard',
    ],
  ),
  [
    'a web editor on the web is refused readably',
    { headers: [form(), ...page('https://md.example')], parts: [browserPart('list', 'image.png')] },
    [401, 'unauthorized'],
    answer => expect(answer.message).toContain('auth.allowedOrigins'),
  ],
  [
    'a web editor on the web passes once its origin is allowed',
    {
      server: 'trusting',
      headers: [form(), ...page('https://md.example')],
      parts: [browserPart('list', 'a.png')],
    },
    'its files',
  ],
])

const QUOTED = ['a"b.png', '"quoted".png', '图 "1".png', 'plain.png', 'end".png']

describeRows('editors and uploaders', [
  ['vs-PicList sends paths', { headers: AXIOS_JSON, paths: ['一.png', '2 2.png'] }, 'its files'],
  ['vs-PicList sends an empty list', { headers: AXIOS_JSON, body: '{"list":[]}' }, 'no clipboard'],
  [
    'vs-PicList sends names with their quotes as they are, and no file is lost',
    { headers: [form(FORM_DATA), ...AXIOS], boundary: FORM_DATA, parts: QUOTED.map(formDataPart) },
    'its files',
    keepsNames(...QUOTED),
  ],
  [
    'dsh-plugin words a missing key itself, by the status',
    { server: 'keyed', headers: [JSON_TYPE], body: '{}' },
    [401, 'unauthorized'],
  ],
  [
    'Picora writes part headers in small letters and PicGo 3 parameters',
    {
      server: 'keyed',
      to: 'POST /upload?uploader=local&configName=Default&configId=0b5f',
      headers: [
        ...['user-agent: Dart/3.5 (dart:io)', 'accept-encoding: gzip', 'authorization: Bearer k1'],
        'content-type: multipart/form-data; boundary=--dio-boundary-0873429615',
      ],
      boundary: '--dio-boundary-0873429615',
      parts: ['content-disposition: form-data; name="files"; filename="a%22b.png"\ncontent-type: image/png'],
    },
    'its files',
    answer => {
      expect(answer.items[0]).toMatchObject({ imgUrl: answer.result[0], origin: 'a"b.png' })
      expect(answer.items[0]).not.toHaveProperty('url')
    },
  ],
  ...(
    [
      ['UTF-8', Buffer.from('图片.png')],
      ['GBK, the default character set of its machine', Buffer.from('cdbcc6ac2e706e67', 'hex')],
    ] as const
  ).map(
    ([charset, name]): Row => [
      `markdown-image-kit, its name in ${charset}`,
      {
        to: 'POST /upload?picbed=local&configName=Default&key=a%20b',
        headers: [
          form('*****1718000000123*****'),
          'User-Agent: Java/17.0.12',
          'Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2',
        ],
        boundary: '*****1718000000123*****',
        parts: [
          Buffer.concat([
            Buffer.from('Content-Disposition: form-data; name="image"; filename="'),
            name,
            Buffer.from('"\r\nContent-Type: image/png'),
          ]),
        ],
      },
      'its files',
      isPng,
    ],
  ),
  [
    'a Chrome extension sends one picture under two fields',
    {
      headers: [form(), 'Authorization: Bearer left-over', ...EXTENSION],
      parts: [browserPart('file', 'blob'), browserPart('files[]', 'blob')],
    },
    'its files',
    answer => {
      expect(origins(answer)).toEqual(['blob', 'blob'])
      expect(answer.items[0]?.fileName).toMatch(/^blob.*\.png$/)
    },
  ],
  ...['base64', 'img', 'images', 'files', 'data', 'image'].map(
    (member): Row => [
      `an extension guesses {"${member}": …}, and takes no address of the failure for the picture`,
      { headers: [JSON_TYPE, ...EXTENSION], body: JSON.stringify({ [member]: 'iVBORw0KGgo=' }) },
      [400, 'invalid_request'],
      hasNoAddress,
    ],
  ),
])

const NAME = '图 "1" +.png'
const H2C = [
  'Connection: Upgrade, HTTP2-Settings',
  'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
  'Upgrade: h2c',
]

/** How each stack writes a form with files of that name; the boundary stands in the header as that stack spells it. */
const STACKS: readonly (readonly [stack: string, sent: Omit<Sent, 'parts'>, head: string])[] = [
  [
    '.NET HttpClient: quoted boundary, bare field, a word of RFC 2047 beside filename*',
    {
      to: 'POST /upload/',
      boundary: '0f8fad5b-d9cb-469f-a165-70867728950e',
      headers: [form('"0f8fad5b-d9cb-469f-a165-70867728950e"')],
    },
    `Content-Type: image/png\nContent-Disposition: form-data; name=file; filename="=?utf-8?B?${Buffer.from(NAME).toString('base64')}?="; filename*=utf-8''${encodeURIComponent(NAME)}`,
  ],
  [
    '.NET HttpClient with an ASCII name: no quotes anywhere',
    { boundary: 'b', headers: [form('b')] },
    `Content-Disposition: form-data; name=file; filename=${NAME}`,
  ],
  [
    'Qt QHttpMultiPart: a quoted boundary with "/" and "="',
    {
      boundary: 'boundary_.oOo._MTA4/NzI5=OTE0/Mjc=',
      headers: [
        form('"boundary_.oOo._MTA4/NzI5=OTE0/Mjc="'),
        'User-Agent: Mozilla/5.0',
        'Accept-Language: zh-CN,en,*',
      ],
    },
    `Content-Type: image/png\nContent-Disposition: form-data; name="file"; filename="${NAME}"`,
  ],
  [
    'Qt with the same boundary and no quotes',
    {
      boundary: 'boundary_.oOo._MTA4/NzI5=OTE0/Mjc=',
      headers: [form('boundary_.oOo._MTA4/NzI5=OTE0/Mjc=')],
    },
    `Content-Disposition: form-data; name="file"; filename="${NAME}"`,
  ],
  [
    'Android OkHttp: a length for the part, the key without "Bearer"',
    {
      server: 'keyed',
      boundary: '3f1d2c4b-5a69-4788-9c0d-e1f203142536',
      headers: [
        ...['Authorization: k1', form('3f1d2c4b-5a69-4788-9c0d-e1f203142536')],
        ...['Accept-Encoding: gzip', 'User-Agent: okhttp/4.12.0'],
      ],
    },
    `Content-Disposition: form-data; name="file"; filename="${NAME.replaceAll('"', '%22')}"\nContent-Type: image/png\nContent-Length: 1069`,
  ],
  [
    'Go mime/multipart: backslashes before quotes, 60 digits',
    {
      boundary: '5b1e6c0a9f3d47c28e10b2a4d6f8091a3c5e7f90b1d2e3f40516273849a0',
      headers: [
        'User-Agent: Go-http-client/1.1',
        form('5b1e6c0a9f3d47c28e10b2a4d6f8091a3c5e7f90b1d2e3f40516273849a0'),
      ],
    },
    `Content-Disposition: form-data; name="file"; filename="${NAME.replaceAll('"', '\\"')}"\nContent-Type: application/octet-stream`,
  ],
  [
    'java.net.http: an offer of HTTP/2 with the POST',
    {
      boundary: 'Java11Boundary',
      headers: [...H2C, 'User-Agent: Java-http-client/17.0.15', form('Java11Boundary')],
    },
    `Content-Disposition: form-data; name="file"; filename="${NAME}"`,
  ],
  [
    'Spring RestTemplate: words of RFC 2047 and a charset in the header',
    {
      boundary: 'Xk2pQ9-vR4tY7_wZ1',
      headers: [
        'Accept: application/json, application/*+json',
        'Content-Type: multipart/form-data;charset=UTF-8;boundary=Xk2pQ9-vR4tY7_wZ1',
      ],
    },
    `Content-Disposition: form-data; name="file"; filename="=?UTF-8?Q?=E5=9B=BE_=221=22_+.png?="\nContent-Type: image/png\nContent-Length: 1069`,
  ],
  [
    'Alamofire: a boundary with a dot, every header in its order',
    {
      boundary: 'alamofire.boundary.9f0c3e1b7a2d4856',
      headers: [
        form('alamofire.boundary.9f0c3e1b7a2d4856'),
        'Accept-Encoding: br;q=1.0, gzip;q=0.9, deflate;q=0.8',
      ],
    },
    `Content-Disposition: form-data; name="files[]"; filename="${NAME}"\nContent-Type: image/png`,
  ],
  ...[`filename="${NAME}"`, `filename*=utf-8''${encodeURIComponent(NAME)}`].map(
    (name): (typeof STACKS)[number] => [
      `Python requests: no type for a part, ${name}`,
      {
        boundary: '0123456789abcdef0123456789abcdef',
        headers: [
          ...['User-Agent: python-requests/2.34.0', 'Accept-Encoding: gzip, deflate', 'Accept: */*'],
          form('0123456789abcdef0123456789abcdef'),
        ],
      },
      `Content-Disposition: form-data; name="file"; ${name}`,
    ],
  ),
  [
    'a hand-made form without a line end behind its last boundary',
    { boundary: 'X', end: '', headers: ['content-type: Multipart/Form-Data; Boundary=X'] },
    `CONTENT-DISPOSITION: form-data; NAME="file"; FILENAME="${NAME}"\nCONTENT-TYPE: image/png`,
  ],
]

describeRows('HTTP stacks', [
  ...STACKS.map(
    ([stack, sent, head]): Row => [
      stack,
      { ...sent, parts: [head, head] },
      'its files',
      keepsNames(NAME, NAME),
    ],
  ),
  ['java.net.http offers HTTP/2 with JSON as well', { headers: H2C, paths: ['a.png'] }, 'its files'],
  [
    'a Go program formats Windows paths into JSON with %s: refused, and not as our fault',
    { headers: ['User-Agent: Go-http-client/1.1'], body: '{"list":["C:\\Users\\me\\图.png"]}' },
    [400, 'invalid_request'],
    answer => expect(answer).not.toHaveProperty('result'),
  ],
])

const PIC = makePicture()
const PDF = Buffer.from('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n', 'latin1')
const file = (name: string, content: string | Buffer = PIC): RawPart => [browserPart('file', name), content]
const field = (content: string): RawPart => ['Content-Disposition: form-data; name="note"', content]
const nameless = (type: string): RawPart => [
  `Content-Disposition: form-data; name="file"\nContent-Type: ${type}`,
  PIC,
]
const sendForm = (...parts: RawPart[]): Sent => ({ headers: [form()], body: formBody(BOUNDARY, parts) })
const hasNoErrors: Row[3] = answer => expect(answer.errors).toEqual([])

describeRows('a form that has files:', [
  ...['files', 'file', 'list', '图[0][x]', '', 'f'.repeat(300)].map(
    (name): Row => [
      `in the field "${name}"`,
      { headers: [form()], parts: [browserPart(name, 'a.png')] },
      'its files',
    ],
  ),
  [
    '60 text fields and a large one',
    sendForm(...Array(60).fill(field('x')), field('x'.repeat(200_000)), file('a')),
    { stored: [PIC] },
  ],
  ['an empty file with a name', sendForm(file('empty.png', '')), { stored: [''] }],
  ['filename="" and bytes', sendForm(file('')), { stored: [PIC] }],
  ['filename="" without bytes beside a file', sendForm(file('', ''), file('a')), { stored: [PIC] }],
  ['no file name but a type', sendForm(nameless('application/octet-stream')), { stored: [PIC] }],
  ['a PDF', sendForm(file('a.pdf', PDF)), { stored: [PDF] }],
  [
    'a nested type under a name',
    sendForm([browserPart('f', 'a', 'multipart/related'), 'x']),
    { stored: ['x'] },
  ],
  [
    'as many files as limits.files allows',
    { headers: [form()], parts: Array(100).fill(browserPart('file', 'same.png')) },
    'its files',
  ],
])

const WHOLE = formBody(BOUNDARY, [file('a.png')])
describeRows('a form is refused:', [
  ...(
    [
      ['no boundary', { headers: ['Content-Type: multipart/form-data'], body: WHOLE }],
      ['another boundary', { headers: [form('Y')], body: WHOLE }],
      ['JSON for a body', { headers: [form()], body: '{"list":[]}' }],
      ['an empty body', { headers: [form()], body: '' }],
      ['its end missing', { headers: [form()], body: WHOLE.subarray(0, -BOUNDARY.length) }],
      ['gzip around it', { headers: [form(), 'Content-Encoding: gzip'], body: gzipSync(WHOLE) }],
      [
        'base64 in a part',
        sendForm([`${browserPart('file', 'a')}\nContent-Transfer-Encoding: base64`, 'AAAA']),
      ],
      ['a form inside the form', sendForm(nameless('multipart/mixed; boundary=Y'))],
      ['a header of 20 kB', sendForm(file('n'.repeat(20_000)))],
    ] as const
  ).map(([what, sent]): Row => [what, sent, [400, 'invalid_request'], hasNoErrors]),
  ['a text field alone', sendForm(field('x')), [400, 'no_file'], hasNoErrors],
  ['a part labelled text/plain', sendForm(nameless('text/plain; charset=utf-8')), [400, 'no_file']],
  ['filename="" without bytes', sendForm(file('', '')), [400, 'no_file']],
  ['120 files', sendForm(...Array(120).fill(file('a'))), [413, 'too_large'], hasNoErrors],
  ['2000 text fields', sendForm(...Array(2000).fill(field('x'))), [413, 'too_large'], hasNoErrors],
])

const sendList = (...list: unknown[]): Sent => ({ headers: [JSON_TYPE], body: JSON.stringify({ list }) })
const says =
  (words: string): Row[3] =>
  answer =>
    expect(answer.message).toContain(words)

describeRows('a list:', [
  ...(['file://', 'FILE://', 'file://localhost'] as const).map(
    (scheme): Row => [
      `a path behind ${scheme}`,
      {
        headers: [JSON_TYPE],
        paths: ['a b.png'],
        write: ([path = '']) =>
          JSON.stringify({ list: [pathToFileURL(path).href.replace('file://', scheme)] }),
      },
      'its files',
    ],
  ),
  ['a data: address', sendList('data:,hello'), { stored: ['hello'] }],
  [
    'in 12 MB of JSON',
    {
      headers: [JSON_TYPE],
      paths: ['a.png'],
      write: list => JSON.stringify({ padding: 'x'.repeat(12_000_000), list }),
    },
    'its files',
  ],
  ...[
    ...['picbed=local', 'picbed=&configName=', 'configName=Default', 'picbed=local&configName=Default'],
    ...['uploader=local', 'unknown=1&secret=left&key=over&configId=1', 'finalizationId='],
  ].map(
    (query): Row => [
      `with the query ${query}`,
      { to: `POST /upload?${query}`, headers: [JSON_TYPE], paths: ['a.png'] },
      'its files',
    ],
  ),
  ...(
    [
      ['/nowhere/a.png', 422, 'source_failed'],
      ['/', 422, 'source_failed'],
      ['C:\\x.png', 422, 'source_failed'],
      ['\\\\host\\share\\x.png', 422, 'source_failed'],
      ['file:///nowhere/a.png', 422, 'source_failed'],
      ['/nowhere/HTTPS://a.example/b.png', 422, 'source_failed'],
      ['/usr/../proc/self/environ', 403, 'source_forbidden'],
    ] as const
  ).map(
    ([entry, status, code]): Row => [
      `${entry} can not be had`,
      sendList(entry),
      [status, code],
      answer => {
        expect(answer.errors).toMatchObject([{ index: 0, origin: entry, code }])
        expect(answer.message).toContain(entry.replace('file://', '').replace('HTTPS://', ''))
      },
    ],
  ),
  ['the status is that of the first that failed', sendList('/dev/zero', '/'), [403, 'source_forbidden']],
  ['whichever that is', sendList('/', '/dev/zero'), [422, 'source_failed']],
  ['an address within no path', sendList('see http://a.example/b.png'), [400, 'invalid_request']],
  ...(
    [
      ['{"list":["C:\\Users\\me\\a.png"]}', 'write each \\ of a path as \\\\'],
      ['{"list":["/a.png",]}', 'check for an extra or missing comma'],
      ['a.png', 'neither a form nor JSON'],
      [JSON.stringify({ list: ['"/a.png"'] }), 'list[0] contains quotation marks'],
    ] as const
  ).map(
    ([body, words]): Row => [
      `${body} is told from other mistakes`,
      { headers: [], body },
      [400, 'invalid_request'],
      says(words),
    ],
  ),
  ['a picture labelled JSON', { headers: [JSON_TYPE], body: PIC }, [400, 'invalid_request']],
])

/** What stands behind `form-data; name="file"; `, the origin in the answer, the name that is stored. */
const NAMES: [disposition: string, origin: string, stored: string][] = [
  ['filename="图片.png"', '图片.png', '图片.png'],
  ['filename="a#b?c&d=e;f+g%41.png"', 'a#b?c&d=e;f+g%41.png', 'a#b_c&d=e;f+g%41.png'],
  ['filename="cafe\u0301.png"', 'cafe\u0301.png', 'caf\u00e9.png'],
  ['filename="a"b.png"', 'a"b.png', 'a_b.png'],
  ['filename=bare name.png', 'bare name.png', 'bare name.png'],
  [`filename="wrong.png"; filename*=utf-8'zh'%E5%9B%BE.png`, '图.png', '图.png'],
  ['filename="=?UTF-8?B?5Zu+54mHLnBuZw==?="', '图片.png', '图片.png'],
  ['filename="..\\..\\x.png"', 'x.png', 'x.png'],
  ['filename=".."', '..', '_...png'],
  ['filename="aux"', 'aux', '_aux.png'],
  ['filename=".hidden"', '.hidden', '_.hidden.png'],
  ['filename="a\0b\x01.png"', 'a\0b\x01.png', 'a_b_.png'],
  ['filename="evil\u202egnp.exe"', 'evil\u202egnp.exe', 'evil_gnp.exe'],
  ['filename="folder/"', '', 'file.png'],
]
const PATH_NAMES = [
  ...['图片.png', '😀.png', '%41.png', '100%.png', 'a b.png', 'a#b?c&d.png', 'e\u0301.png', '"q".png'],
  ...[
    "it's.png",
    'back\\slash.png',
    '*.png',
    '$HOME.png',
    '`id`.png',
    '-rf',
    'line\nfeed.png',
    '~',
    'CON.png',
  ],
  ...['a', '.hidden', `${'长'.repeat(80)}.png`, '[1].png', '{a,b}.png', 'C:x.png'],
]

describeRows('names:', [
  [
    'none of a form gets lost or swapped',
    {
      server: 'bare',
      headers: [form()],
      parts: NAMES.map(
        ([disposition]) =>
          `Content-Disposition: form-data; name="file"; ${disposition}\nContent-Type: image/png`,
      ),
    },
    'its files',
    answer => {
      expect(origins(answer)).toEqual(NAMES.map(([, origin]) => origin))
      expect(answer.items.map(item => item.fileName)).toEqual(NAMES.map(([, , stored]) => stored))
    },
  ],
  ['nothing in a path is decoded', { headers: [JSON_TYPE], paths: PATH_NAMES }, 'its files', keepsPaths],
])

it('names survive the way through a real FormData', async () => {
  const names = [
    '图 片.png',
    '%41%.png',
    'a"b.png',
    "c'd;e.png",
    'f\\g.png',
    'h\ni.png',
    '😀.png',
    'e\u0301.png',
  ]
  const files = makePictures(names.length)
  const body = formOf(Object.fromEntries(names.map((name, index) => [name, files[index]!])))
  const answer = await post(`${SERVERS.plain().url}/upload`, { body })
  await expectStored(answer, files)
  // A backslash separates folders.
  expect(origins(answer)).toEqual(names.map(name => name.replace('f\\', '')))
})

describe('Obsidian drops the first slash of paths ("Upload all images" on Linux and macOS, from f9a9cbf on)', () => {
  const HINT = /the program may have dropped the first "\/"\.$/
  /** Sends the path of a picture without its first slash, beside others that are wrong in other ways. */
  async function sendCut(config: Record<string, unknown>, query = '') {
    const app = await startApp({ config })
    const path = join(app.directory, '图片.png')
    await writeFile(path, makePicture())
    const send = (...list: string[]) =>
      sendUpload(app.url, {
        line: `POST /upload${query} HTTP/1.1`,
        headers: [JSON_TYPE, ...REQUEST_URL],
        body: JSON.stringify({ list }),
      })
    return { path, send }
  }

  it('and is told so where that file exists, and not where it does not', async () => {
    const { path, send } = await sendCut({})
    const answer = await send('', path.slice(1), path)
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toMatch(HINT)
    expect(answer.message).toContain(`"${path.slice(0, 77)}`)
    for (const wrong of [`${path.slice(1)}.gone`, 'etc', '~/a.png', 'proc/self/environ', 'a\0b'])
      expect((await send(wrong)).message).not.toMatch(HINT)
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

describe('pictures of the web', () => {
  it('an extension finds no other address in the answer to one it named itself', async () => {
    const web = await serve((_req, res) => res.writeHead(404).end())
    const body = JSON.stringify({ list: [`${web.origin}/gone.png`] })
    const answer = await sendUpload(SERVERS.plain().url, { headers: [JSON_TYPE, ...EXTENSION], body })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors[0]?.origin).toBe(`${web.origin}/gone.png`)
  })

  it.each([[[]], [[3, 11, 19]]])(
    'a WeChat article exporter maps 20 addresses by index, although %j fail and answers come in another order',
    async missing => {
      const files = makePictures(20).map((file, index) =>
        missing.includes(index as never) ? undefined : file,
      )
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
      const request = { headers: [JSON_TYPE, ...EXTENSION], body: JSON.stringify({ list }) }
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
})

it('a failed file is named, and the links of the others are there: Typora prints it, dsh-plugin tells them apart', async () => {
  const folder = await makeDirectory()
  const files = makePictures(3)
  const paths = ['a.png', 'ü b.png', 'c.png'].map(name => join(folder, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  const list = [paths[0], '/gone/missing 图.png', paths[1], paths[2]]
  for (const headers of [TYPORA, [JSON_TYPE, 'Authorization: Bearer left-over']]) {
    const answer = await sendUpload(SERVERS.plain().url, { headers, body: JSON.stringify({ list }) })
    expectFailure(answer, 422, 'source_failed')
    expect(answer.message).toContain('/gone/missing 图.png')
    expect(answer.items.map(item => [item.origin, item.contentType])).toEqual(
      paths.map(path => [path, 'image/png']),
    )
    expect(answer.errors.map(error => error.origin)).toEqual(['/gone/missing 图.png'])
    await expectLinks(answer.result, files)
  }
})

describe('a PicList that uploads to this server', () => {
  const sent = {
    headers: [form(FORM_DATA), ...AXIOS],
    body: formBody(FORM_DATA, [[formDataPart('截图.png'), 'x']]),
  }

  it('finds its destination, however it is named', async () => {
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
      ['?configName=Default&key=k1', 'main'],
      ['?configName=Default&picbed=local&key=k1', 'main'],
      ['?configName=my%20blog&picbed=local&key=k1', 'my blog'],
      ['?configName=my+blog&picbed=local&key=k1', 'my blog'],
      ['?configName=my%20blog&key=k1', 'my blog'],
      ['?key=k1&picbed=local&configName=%E6%88%91%E7%9A%84', '我的'],
    ]) {
      const answer = await sendUpload(app.url, { line: `POST /upload${query} HTTP/1.1`, ...sent })
      await expectStored(answer, ['x'])
      expect(decodeURIComponent(answer.result[0]!), query).toContain(`/files/${wanted}/`)
    }
  })
})
