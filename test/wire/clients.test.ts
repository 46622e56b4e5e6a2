import { rm, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { expectFailure, expectLinks, expectNoClipboard, expectStored } from '../helpers/expect-answer.ts'
import { type Answer, post } from '../helpers/form.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, type RawPart, sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

// What clients send, byte for byte, and what they need of the response. To add a client, add a row.

const SERVERS = {
  plain: shareApp(),
  keyed: shareApp({ config: { server: { key: 'k1' }, auth: { loopbackExempt: false } } }),
  alwaysOk: shareApp({ config: { compat: { alwaysOk: true } } }),
  trusting: shareApp({ config: { auth: { allowedOrigins: ['https://md.example'] } } }),
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

/** What the client finds: its files, no clipboard, or a failure. */
type Found = 'its files' | 'no clipboard' | readonly [status: number, code: string]
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
      else if (found === 'no clipboard') await expectNoClipboard(Promise.resolve(answer))
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

describe('the preflight of', () => {
  it.each<[client: string, headers: string[], asked: string]>([
    ['Typora, which Chromium sends with "Origin: null"', TYPORA, 'content-type'],
    ['SiYuan, the user agent included', SIYUAN, 'content-type, user-agent'],
    ['an extension, for its key', EXTENSION, 'authorization, content-type'],
    ['a web editor', page('http://localhost:5173'), 'authorization, content-type, x-picgo-secret'],
  ])('%s passes', async (_client, headers, asked) => {
    for (const target of ['/upload', '/heartbeat']) {
      const answer = await sendRaw(SERVERS.plain().url, {
        line: `OPTIONS ${target} HTTP/1.1`,
        headers: [
          ...headers,
          'Access-Control-Request-Method: POST',
          `Access-Control-Request-Headers: ${asked.replaceAll(' ', '')}`,
        ],
      })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-headers')).toContain(asked)
      expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    }
  })

  it('a helper page, which takes any answer for "it runs"; one that is trusted may ask for this machine', async () => {
    const answer = await sendRaw(SERVERS.trusting().url, {
      line: 'OPTIONS /upload HTTP/1.1',
      headers: [
        ...page('https://md.example'),
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Private-Network: true',
      ],
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-private-network')).toBe('true')
  })
})

it.each<[client: string, line: string, headers: string[], body: object]>([
  ['an extension', 'GET /heartbeat', EXTENSION, { success: true, result: 'alive' }],
  ['Obsidian', 'POST /heartbeat', REQUEST_URL, { success: true, result: 'alive' }],
  ['a PicList', 'POST /heartbeat', [...AXIOS, 'Content-Length: 0'], { success: true, result: 'alive' }],
  [
    'a web editor with a key',
    'POST /heartbeat',
    ['Authorization: Bearer wrong'],
    { success: true, result: 'alive' },
  ],
  ...['/health', '/health/', '/health?t=1', '//health'].map((target): [string, string, string[], object] => [
    `zpic, ${target}`,
    `GET ${target}`,
    REQUEST_URL,
    { success: true, status: 'ok' },
  ]),
])('%s asks whether the server is there', async (_client, line, headers, body) => {
  const answer = await sendRaw(SERVERS.keyed().url, { line: `${line} HTTP/1.1`, headers })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  expect(JSON.parse(answer.body.toString())).toStrictEqual(body)
})

it('Obsidian is not offered deletion, and told so when it tries', async () => {
  const answer = await sendRaw(SERVERS.plain().url, {
    line: 'POST /delete HTTP/1.1',
    headers: [JSON_TYPE, ...REQUEST_URL],
    body: JSON.stringify({ list: [{ imgUrl: 'https://a.example/b.png', id: '1' }] }),
  })
  expect(answer.status).toBe(404)
  expect(JSON.parse(answer.body.toString())).toMatchObject({ success: false, code: 'not_found' })
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
  it.each<[client: string, headers: string[], target: string]>([
    ['Obsidian', [JSON_TYPE, ...REQUEST_URL], '/p/x.png?w=1&sig=%2F=#frag'],
    ['Typora', TYPORA, '/a.png?token=x%20y&z=1'],
  ])('%s uploads one beside a file', async (_client, headers, target) => {
    const [local, remote] = makePictures(2)
    const web = await serve((_req, res) => res.end(remote))
    const path = join(await makeDirectory(), 'a.png')
    await writeFile(path, local!)
    const body = JSON.stringify({ list: [web.origin + target, path] })
    await expectStored(await sendUpload(SERVERS.plain().url, { headers, body }), [remote!, local!])
  })

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

it('Typora validates again with other icons under the same names', async () => {
  const folder = await makeDirectory()
  const list = ICONS.map(name => join(folder, name))
  for (let round = 0; round < 2; round++) {
    const files = makePictures(2)
    await Promise.all(list.map((path, index) => writeFile(path, files[index]!)))
    const body = JSON.stringify({ list })
    await expectStored(await sendUpload(SERVERS.plain().url, { headers: TYPORA, body }), files)
  }
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

it('Typora on macOS sends the same upload twice at once: both get the links', async () => {
  const folder = await makeDirectory()
  const files = makePictures(2)
  const paths = ICONS.map(name => join(folder, name))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  const request = { headers: TYPORA_MAC, body: escapeSolidus(paths) }
  const { url } = SERVERS.plain()
  const answers = await Promise.all([sendUpload(url, request), sendUpload(url, request)])
  for (const answer of answers) await expectStored(answer, files)
})

it('Yank Note deletes the file as soon as it has the answer', async () => {
  const path = join(await makeDirectory(), 'yn-tmp-1.png')
  const file = makePicture()
  await writeFile(path, file)
  const body = JSON.stringify({ list: [path] })
  const answer = await sendUpload(SERVERS.plain().url, { headers: [JSON_TYPE], body })
  await rm(path)
  await expectStored(answer, [file])
})

it.each(['lsp://logseq.io', 'lsp://logseq.com'])(
  'Logseq sends JSON as text from %s to localhost',
  async origin => {
    const { url } = SERVERS.plain()
    const host = `Host: localhost:${new URL(url).port}`
    const { answer, files } = await send({
      headers: [host, TEXT_TYPE, ...page(origin)],
      paths: ['image_1718.png'],
    })
    isReadable(answer, [])
    expect(answer.result[0]).toMatch(/^http:\/\/localhost:/)
    const links = answer.result.map(link => link.replace('localhost', '127.0.0.1'))
    await expectLinks(links, files)
  },
)

it('"… to Notion" sends all pictures of a chat at once under one name', async () => {
  const app = await startApp()
  const files = makePictures(30, 50_000)
  const answers = await Promise.all(
    files.map((file, index) => {
      const boundary = `----GMFormBoundary171800${index}`
      const body = formBody(boundary, [[browserPart('file', 'image.png'), file]])
      return sendUpload(app.url, { headers: [form(boundary), ...EXTENSION], body })
    }),
  )
  for (const [index, answer] of answers.entries()) await expectStored(answer, [files[index]!])
  expect(new Set(answers.map(answer => answer.result[0])).size).toBe(files.length)
  expect(await app.files(), 'nothing temporary stays').toHaveLength(files.length)
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

  it('sends a key with a plus sign as it is', async () => {
    const key = 'ab+cd/ef=='
    const app = await startApp({ config: { server: { key }, auth: { loopbackExempt: false } } })
    const line = `POST /upload?configName=&picbed=&key=${key} HTTP/1.1`
    await expectStored(await sendUpload(app.url, { line, ...sent }), ['x'])
  })
})

it('Zotero sends the key without "Bearer", and counts the links', async () => {
  const directory = await makeDirectory()
  const files = makePictures(2)
  const list = ['fig 1.png', 'fig 2.png'].map(name => join(directory, name))
  await Promise.all(list.map((path, index) => writeFile(path, files[index]!)))
  const config = {
    server: { key: 'k1' },
    auth: { loopbackExempt: false },
    sources: { path: { roots: [directory] } },
  }
  const app = await startApp({ directory, config })
  const upload = (key: string) =>
    sendUpload(app.url, { headers: [JSON_TYPE, `Authorization: ${key}`], body: JSON.stringify({ list }) })
  await expectStored(await upload('k1'), files)
  expectFailure(await upload('k2'), 401, 'unauthorized')
})

it('Home Assistant and lazycat stand in front as a proxy with a name of their own', async () => {
  const app = await startApp({ config: { server: { key: 'k1', trustProxy: ['loopback'] } } })
  const body = formBody(FORM_DATA, [[formDataPart('a.png'), 'x']])
  const proxied = ['Host: piclist.example', 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: https']
  const headers = [form(FORM_DATA), ...AXIOS, ...proxied]
  expectFailure(await sendUpload(app.url, { headers, body }), 401, 'unauthorized')
  const answer = await sendUpload(app.url, { line: 'POST /upload?key=k1 HTTP/1.1', headers, body })
  expect(answer.result[0]).toMatch(/^https:\/\/piclist\.example\/files\//)
  await expectLinks([answer.result[0]!.replace('https://piclist.example', app.url)], ['x'])
})

describe('Node', () => {
  it('undici sends a form, whole and as a stream of unknown length', async () => {
    const { url } = SERVERS.plain()
    const file = makePicture()
    const body = new FormData()
    body.append('file', new File([new Uint8Array(file)], NAME, { type: 'image/png' }))
    const answer = await post(`${url}/upload`, { body })
    await expectStored(answer, [file])
    expect(origins(answer)).toEqual([NAME])

    const whole = formBody('X', [[browserPart('file', 'a.png'), file]]).toString('latin1')
    const stream = new ReadableStream({
      start(controller) {
        for (const piece of whole.match(/.{1,97}/gs) ?? []) controller.enqueue(Buffer.from(piece, 'latin1'))
        controller.close()
      },
    })
    const headers = { 'Content-Type': 'multipart/form-data; boundary=X' }
    await expectStored(await post(`${url}/upload`, { body: stream, headers, duplex: 'half' }), [file])
  })

  it('http.request writes chunks over a connection that it keeps', async () => {
    const { url } = SERVERS.plain()
    const folder = await makeDirectory()
    const files = makePictures(3)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const [index, file] of files.entries()) {
      const path = join(folder, `图${index}.png`)
      await writeFile(path, file)
      const body = Buffer.from(JSON.stringify({ list: [path] }))
      const { answer, reused } = await new Promise<{ answer: Answer; reused: boolean }>((resolve, reject) => {
        const sent = httpRequest(`${url}/upload`, { method: 'POST', agent }, res => {
          const head = { status: res.statusCode ?? 0, headers: new Headers() }
          text(res).then(
            json => resolve({ answer: { ...JSON.parse(json), ...head }, reused: sent.reusedSocket }),
            reject,
          )
        })
        sent.on('error', reject)
        // In the middle of a character.
        sent.write(body.subarray(0, body.indexOf(0xe5) + 1))
        sent.end(body.subarray(body.indexOf(0xe5) + 1))
      })
      await expectStored(answer, [file])
      expect(reused).toBe(index > 0)
    }
    agent.destroy()
  })
})
