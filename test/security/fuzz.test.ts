import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { inMemory } from '../../src/body.ts'
import { ConfigError, loadConfig } from '../../src/config/load.ts'
import { UploadError } from '../../src/errors.ts'
import { createMask, hideSignatures } from '../../src/mask.ts'
import { cleanFileName } from '../../src/payload/file-name.ts'
import type { Payload } from '../../src/payload/index.ts'
import { parseKeyTemplate } from '../../src/payload/object-key.ts'
import { findPathFault } from '../../src/providers/local/key-path.ts'
import { parseJsonPath } from '../../src/providers/shared/form-host.ts'
import { findInXml, parseXmlPath } from '../../src/providers/shared/xml-path.ts'
import { parseChallenges } from '../../src/providers/webdav/digest.ts'
import { parseList } from '../../src/routes/list.ts'
import { readBoundary } from '../../src/routes/multipart.ts'
import { parsePartHeader } from '../../src/routes/part-header.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { readMended } from '../helpers/mended-form.ts'
import { formBody, type RawPart } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

/** Seeds that CI tries. One that found something is added here. */
const KEPT = [1, 20261121]
const FRESH = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
/** How many times more than in `npm test`; test/chaos/fuzz.test.ts sets it. */
const TIMES = Number(process.env['FUZZ_TIMES'] ?? 1)
const TIME_LIMIT_MS = 60_000 * TIMES

console.log(`Fresh seed of this run: FUZZ_SEED=${FRESH}`)

/** A test that a property holds for as many values. */
function fuzz<T extends unknown[]>(
  name: string,
  runs: number,
  values: { [K in keyof T]: fc.Arbitrary<T[K]> },
  holds: (...args: T) => unknown,
): void {
  it(`fuzz: ${name}`, { timeout: TIME_LIMIT_MS }, () => hold(runs, values, holds))
}

async function hold<T extends unknown[]>(
  runs: number,
  values: { [K in keyof T]: fc.Arbitrary<T[K]> },
  holds: (...args: T) => unknown,
): Promise<void> {
  const isCI = process.env['CI'] === 'true'
  const property = fc.asyncProperty(fc.tuple(...values) as fc.Arbitrary<T>, async args => {
    await holds(...args)
  })
  for (const seed of [...(isCI ? KEPT : []), FRESH])
    await fc.assert(property, { seed, numRuns: runs * TIMES })
}

/** Runs to an end or fails as it may; every other failure is a finding. */
function mayFail<T>(work: () => T, Expected: new (...args: never[]) => Error): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof Expected) return undefined
    throw error
  }
}

/** What means something somewhere: to forms, headers, paths, names, templates, markup. */
const PIECES = [
  ...['\r', '\n', '\r\n', '\t', ' ', '\r\n--b', '\r\n--b--', '\0', '\u202e', '\u200b', '\ufeff', '\ud83d'],
  ...`" ' \\ \\" ; = : , % %22 %00 %2e%2e%2f / .. ../ . - -- --b < > <![CDATA[ ]]> <!-- <?xml &amp;`.split(
    ' ',
  ),
  ..."filename filename* filename*0* name form-data UTF-8'' =?utf-8?B? =?a?q? ?= con aux. COM¹".split(' '),
  ...'{ } {filename} {sha256-8} {Y} {localFolder:2} {str-99} ${ $${ [ ] [0] * @ # ? é 日本 😀'.split(' '),
]

/** Text made of these, and of anything else. */
const piece = fc.oneof(
  fc.constantFrom(...PIECES),
  fc.string({ unit: 'grapheme', maxLength: 5 }),
  fc.string({ unit: 'binary', maxLength: 3 }),
)
const text = fc.array(piece, { maxLength: 20 }).map(pieces => pieces.join(''))
const bytes = fc.oneof(fc.uint8Array({ maxLength: 60 }), text).map(raw => Buffer.from(raw as string))

const header = fc.oneof(
  fc
    .tuple(text, text)
    .map(([name, more]) => `Content-Disposition: form-data; name="file"; filename="${name}"${more}`),
  fc.tuple(text, text).map(([name, value]) => `Content-Disposition: form-data; ${name}=${value}`),
  text.map(value => `Content-Type: ${value}`),
  text,
)
const part = fc.tuple(
  fc.array(header, { maxLength: 3 }).map(lines => lines.join('\n')),
  bytes,
)

/** A form, and what becomes of it when somebody cuts, doubles or adds something anywhere. */
const form = fc
  .tuple(
    fc.array(part, { maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(), fc.nat(30), bytes), { maxLength: 3 }),
    fc.boolean(),
  )
  .map(([parts, splices, isWhole]) => {
    let body = formBody('b', parts)
    if (isWhole) return body
    for (const [place, length, added] of splices) {
      const at = place % (body.length + 1)
      body = Buffer.concat([body.subarray(0, at), added, body.subarray(at + length)])
    }
    return body
  })

async function readForm(body: Buffer, chunk: number): Promise<Buffer[]> {
  const pieces = Array.from({ length: Math.ceil(body.length / chunk) }, (_, i) =>
    body.subarray(i * chunk, (i + 1) * chunk),
  )
  const { headers, files } = await readMended(Readable.from(pieces, { objectMode: false }), 'b', {
    maxParts: 100,
  })
  expect(files).toHaveLength(headers.length)
  return files.map(file => file.buffer)
}

const chunkSize = fc.integer({ min: 1, max: 200 })

fuzz('any form is read or refused', 120, [form, chunkSize], async (body, chunk) => {
  await readForm(body, chunk).catch((error: unknown) => {
    if (!(error instanceof UploadError)) throw error
  })
})

// What a sender may not take this boundary for: it begins no line of the content, the first one included.
const hasBoundary = (content: Buffer) => Buffer.concat([Buffer.from('\r\n'), content]).includes('\r\n--b')
const contents = fc.array(
  bytes.filter(one => !hasBoundary(one)),
  { minLength: 1, maxLength: 4 },
)

fuzz(
  'any files come through a form as they are, in any chunks',
  60,
  [contents, chunkSize],
  async (files, chunk) => {
    const parts = files.map((one): RawPart => ['Content-Disposition: form-data; filename="a"', one])
    expect(await readForm(formBody('b', parts), chunk)).toEqual(files)
  },
)

const headers = fc.array(header, { maxLength: 4 })

fuzz(
  'any part header, boundary and challenge is understood or refused',
  400,
  [headers, text],
  (lines, value) => {
    mayFail(() => parsePartHeader(Buffer.from(lines.join('\r\n'))), UploadError)
    mayFail(() => readBoundary(`multipart/form-data; boundary=${value}`), UploadError)
    parseChallenges(value)
    const masked = createMask([value, 'abcdefgh'])(`${hideSignatures(value)} abcdefgh`)
    expect(masked).not.toContain('abcdefgh')
  },
)

const json = fc.oneof(
  fc.json().map(String),
  fc
    .tuple(fc.constantFrom('list', 'List', '__proto__', ''), fc.jsonValue())
    .map(([name, value]) => JSON.stringify({ [name]: value })),
  fc
    .array(
      fc.oneof(
        text,
        text.map(one => `/${one}`),
        text.map(one => `http://${one}`),
        text.map(one => `data:${one},${one}`),
        text.map(one => `file://${one}`),
      ),
      { maxLength: 5 },
    )
    .map(list => JSON.stringify({ list })),
  text,
)

const lists = fc.oneof(
  json.map(one => Buffer.from(one)),
  bytes,
)

fuzz('any list is read or refused', 400, [lists], body => {
  try {
    parseList(body, 100)
  } catch (error) {
    expect(error).toBeInstanceOf(UploadError)
  }
})

const EXTENSIONS = fc.constantFrom('', '.png', '.svg', '.bin')
const names = fc.oneof(
  text,
  text.map(one => one.repeat(50)),
)

fuzz('any name becomes one that every disk takes', 400, [names, EXTENSIONS], (name, extension) => {
  const clean = cleanFileName(name, extension)
  expect(clean).toMatch(/^[^\0-\x1f\x7f-\x9f<>:"/\\|?*\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+$/)
  expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(200)
  if (/^_\.+$/.test(clean)) return // of dots alone
  expect(clean).not.toMatch(/^\.|[. ]$/)
  for (const platform of ['linux', 'win32']) expect(findPathFault(clean, platform)).toBeUndefined()
})

fuzz(
  'any key template makes keys that stay in their folder, or is refused',
  500,
  [text, text, fc.array(text, { maxLength: 3 }), EXTENSIONS],
  async (template, name, folders, extension) => {
    const makeKey = mayFail(() => parseKeyTemplate(template), Error)
    if (!makeKey) return
    const payload = { name, folders, extension, sha256: 'ab'.repeat(32), ...inMemory(Buffer.from('x')) }
    const key = await makeKey(payload as unknown as Payload, new Date(0))
    for (const segment of key.split('/')) {
      expect(segment).not.toMatch(/^(?:\.{1,2})?$|[\\\0-\x1f]/)
      expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(255)
    }
  },
)

fuzz('any place in an answer is looked for', 500, [text, text], (path, xml) => {
  mayFail(() => parseJsonPath(path), Error)
  const place = mayFail(() => parseXmlPath(`/${path}`), Error)
  if (place) findInXml(xml, place)
})

const OPTIONS = [
  'server host port key publicUrl trustProxy auth keys name destinations sources path roots url limits',
  'fileSize files default providers local s3 http webdav Default directory serve keyTemplate',
  'finalization hooks webhook store driver picBed current uploader settings __proto__ constructor',
  'fallback mirrors urlRewrite from',
].flatMap(line => line.split(' '))
const value = fc.oneof(
  text,
  fc.constantFrom<unknown>(
    '',
    '1MB',
    'local',
    'local/Default',
    '10.0.0.0/8',
    'https://a.example/b',
    true,
    false,
    null,
  ),
  fc.integer(),
  fc.double(),
)
const { config } = fc.letrec<{ config: unknown; any: unknown }>(tie => ({
  config: fc.dictionary(fc.constantFrom(...OPTIONS), tie('any'), { maxKeys: 6 }),
  any: fc.oneof({ depthSize: 'medium' }, value, tie('config'), fc.array(tie('any'), { maxLength: 3 })),
}))

const sources = fc.oneof(
  config.map(one => JSON.stringify(one)),
  json,
  text,
)

it('fuzz: any configuration file is loaded or refused in words', { timeout: TIME_LIMIT_MS }, async () => {
  const cwd = await makeDirectory()
  const file = join(cwd, 'upload-server.json')
  const place = { env: { XDG_DATA_HOME: cwd }, platform: 'linux', cwd, file } as const
  await hold(60, [sources], async source => {
    await writeFile(file, source)
    const error: unknown = await loadConfig(place).catch((thrown: unknown) => thrown)
    if (error instanceof Error) expect(error).toBeInstanceOf(ConfigError)
    if (error instanceof ConfigError) expect(error.problems.join('')).not.toBe('')
  })
})

const target = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('/upload', '/upload?picbed=local', '/upload?configName=x&key=y', '//upload/'),
  },
  text.map(one => `/${encodeURI(one.toWellFormed())}`),
  text.map(one => `/files/Default/${encodeURIComponent(one.toWellFormed())}`),
  text.map(one => `/upload?${encodeURI(one.toWellFormed())}`),
  text,
)
const FIELDS = [
  'Content-Type: multipart/form-data; boundary=b | Content-Type: application/json',
  'Expect: 100-continue | Content-Encoding: gzip | Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked | Host: evil | Content-Length: 5 | Content-Length: -1',
  'Content-Length: 99999999999999999999 | Upgrade: h2c | Connection: Upgrade | Connection: close',
  'Range: bytes=0- | If-None-Match: * | Accept: text/plain | Content-Range: bytes 0-1/2',
  'X-Request-Id: a | Idempotency-Key: a | Authorization: Basic == | Origin: null',
].flatMap(line => line.split(' | '))
const FIELD_NAMES = [
  'X-Request-Id Idempotency-Key Authorization Host Origin X-Forwarded-For Content-Type Accept Range',
  'X-File-Name Content-Disposition',
].flatMap(line => line.split(' '))
const field = fc.oneof(
  fc.constantFrom(...FIELDS),
  fc
    .tuple(fc.constantFrom(...FIELD_NAMES), text)
    .map(([name, one]) => `${name}: ${one.replace(/[\r\n]/g, '')}`),
)
const request = fc
  .tuple(
    fc.constantFrom('POST', 'POST', 'POST', 'GET', 'PUT', 'OPTIONS', 'HEAD', 'DELETE', 'CONNECT', 'PRI'),
    target,
    fc.array(field, { maxLength: 4 }),
    fc.oneof(
      form,
      json.map(one => Buffer.from(one)),
      bytes,
    ),
    fc.constantFrom('length', 'length', 'length', 'chunked', 'none', 'short', 'long'),
  )
  .map(([method, path, fields, body, framing]) => {
    const length = body.length + (framing === 'short' ? -1 : framing === 'long' ? 5 : 0)
    const isForm = body.includes('--b') ? ['Content-Type: multipart/form-data; boundary=b'] : []
    const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...isForm, ...fields]
    if (framing === 'chunked') lines.push('Transfer-Encoding: chunked')
    else if (framing !== 'none') lines.push(`Content-Length: ${length}`)
    const content =
      framing === 'chunked'
        ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')])
        : body
    return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content])
  })

it('fuzz: a running server answers whatever comes over the wire, and goes on', {
  timeout: TIME_LIMIT_MS,
}, async () => {
  const off = { enabled: false }
  const app = await startApp({
    config: {
      // Nothing of what is made up here may be fetched or read.
      sources: { url: off, path: off, clipboard: off },
      limits: { bodyIdle: '500ms', files: 5 },
      providers: { local: { Default: { directory: 'stored', serve: true, durable: false } } },
    },
  })
  const { hostname, port } = new URL(app.url)
  const exchange = (message: Buffer) =>
    new Promise<string>(resolve => {
      let answer = ''
      const socket = connect(Number(port), hostname)
      socket.on('data', chunk => {
        answer += chunk.toString('latin1')
      })
      socket.on('error', () => {}).once('close', () => resolve(answer))
      socket.end(message)
    })
  await hold(15, [fc.array(request, { minLength: 25, maxLength: 25 })], async requests => {
    const answers = await Promise.all(requests.map(exchange))
    for (const answer of answers) expect(answer).not.toMatch(/^HTTP\/1\.1 5\d\d|"code":"internal_error"/)
    expect((await fetch(`${app.url}/heartbeat`)).status).toBe(200)
  })
  expect(app.log.filter(line => line['level'] === 'error')).toEqual([])
})
