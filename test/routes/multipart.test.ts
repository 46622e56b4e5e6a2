import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { PartMender, type PartMenderOptions, readBoundary } from '../../src/routes/multipart.ts'
import { receive } from '../helpers/mended-form.ts'

function read(
  chunks: readonly (string | Buffer)[],
  options: Partial<PartMenderOptions> = {},
  boundary = 'b',
) {
  const bytes = chunks.map(chunk => (typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk))
  return receive(Readable.from(bytes, { objectMode: false }), boundary, options)
}

/** Names and contents as text, for comparison with a table. */
async function readTexts(body: string, options: Partial<PartMenderOptions> = {}): Promise<string[]> {
  const files = await read([body], options)
  return files.map(file => `${file.fileName}=${file.bytes.toString('latin1')}`)
}

const file = (name: string) => `Content-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`
const FIELD = 'Content-Disposition: form-data; name="x"\r\n\r\n'

describe('readBoundary', () => {
  it.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;BOUNDARY=aBc', 'aBc'],
    ['multipart/form-data; boundary="abc"', 'abc'],
    ['multipart/form-data; boundary = "a b" ', 'a b'],
    ['multipart/form-data; charset=utf-8; boundary=abc; x=y', 'abc'],
    ['multipart/form-data; x="; boundary=no"; boundary=yes', 'yes'],
    ['multipart/form-data; boundary="boundary_.oOo._MTA4/Nz=="', 'boundary_.oOo._MTA4/Nz=='],
    ['multipart/form-data; boundary=boundary_.oOo._MTA4/Nz==', 'boundary_.oOo._MTA4/Nz=='],
    ['multipart/form-data; boundary=--dio-boundary-0123', '--dio-boundary-0123'],
    ['multipart/form-data; boundary="a\\"b;c"', 'a"b;c'],
    ['multipart/form-data; ; boundary=abc;', 'abc'],
    [`multipart/form-data; boundary=${'x'.repeat(200)}`, 'x'.repeat(200)],
  ])('%s', (contentType, boundary) => {
    expect(readBoundary(contentType)).toBe(boundary)
  })

  it.each([
    undefined,
    '',
    'application/json',
    'multipart/mixed; boundary=a',
    'multipart/form-database; boundary=a',
  ])('%s is no form', contentType => {
    expect(readBoundary(contentType)).toBeUndefined()
  })

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=""',
    'multipart/form-data; boundary="  "',
    'multipart/form-data; x=y',
    `multipart/form-data; boundary=${'x'.repeat(201)}`,
  ])('%s is refused with what to do', contentType => {
    expect(() => readBoundary(contentType)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('Do not write') }),
    )
  })
})

describe('PartMender brings every file of a form to multer:', () => {
  it.each<[string, string, string[]]>([
    ['one file', `--b\r\n${file('a')}1\r\n--b--\r\n`, ['a=1']],
    ['no line end at the end', `--b\r\n${file('a')}1\r\n--b--`, ['a=1']],
    ['half a line end at the end', `--b\r\n${file('a')}1\r\n--b--\r`, ['a=1']],
    ['a preamble and an epilogue', `x\r\n--bX\r\n--b\r\n${file('a')}1\r\n--b--\r\nx\r\n--b--`, ['a=1']],
    ['an empty line before the form', `\r\n--b\r\n${file('a')}1\r\n--b--\r\n`, ['a=1']],
    [
      'blanks behind boundaries',
      `--b \t\r\n${file('a')}1\r\n--b  \r\n${file('c')}2\r\n--b-- \r\n`,
      ['a=1', 'c=2'],
    ],
    ['an empty file', `--b\r\n${file('a')}\r\n--b--\r\n`, ['a=']],
    [
      'an empty file without a line of its own',
      `--b\r\n${file('a')}--b\r\n${file('c')}2\r\n--b--`,
      ['a=', 'c=2'],
    ],
    [
      'a header that the next boundary ends',
      `--b\r\nContent-Type: x/y\r\n--b\r\n${file('c')}2\r\n--b--`,
      ['=', 'c=2'],
    ],
    ['parts without anything', `--b\r\n--b\r\n\r\n--b\r\n\r\nx\r\n--b\r\n${file('c')}2\r\n--b--`, ['c=2']],
    ['line ends at both ends of a file', `--b\r\n${file('a')}\r\n1\r\n\r\n--b--`, ['a=\r\n1\r\n']],
    ['half line ends and dashes', `--b\r\n${file('a')}-\r\r\n-\r\n--\r\n--b--`, ['a=-\r\r\n-\r\n--']],
    [
      'text fields between files',
      `--b\r\n${FIELD}t\r\n--b\r\n${file('a')}1\r\n--b\r\n${FIELD}\r\n--b--`,
      ['a=1'],
    ],
    ['the same name several times', `--b\r\n${file('a')}1\r\n--b\r\n${file('a')}2\r\n--b--`, ['a=1', 'a=2']],
    ['a part without a name and a type', '--b\r\nContent-Type: image/png\r\n\r\n1\r\n--b--', ['=1']],
    ['an empty form', '--b--\r\n', []],
    ['a form of text fields', `--b\r\n${FIELD}1\r\n--b--`, []],
  ])('%s', async (_case, body, expected) => {
    expect(await readTexts(body)).toEqual(expected)
  })

  it.each([
    ...['--bX', '--bb', '--b-', '--b--X', '--b \tX', 'x--b', '\n--b\n', '--B', `--b${' '.repeat(300)}\r\n`],
    // As much padding as there may not be, and the end of the line at once.
    ...[`--b--${' '.repeat(254)}`, `--b${' '.repeat(256)}`],
  ])('the line %j in a file is data, though a parser may take it for a boundary', async line => {
    const content = `1\r\n${line}\r\n2`
    expect(await readTexts(`--b\r\n${file('a')}${content}\r\n--b--\r\n`)).toEqual([`a=${content}`])
  })

  it('a boundary with characters that mean something in patterns and headers', async () => {
    const boundary = '"(.*)+/=?\\ é'
    const body = `--${boundary}\r\n${file('a')}1\r\n--${boundary}--\r\n`
    expect((await read([body], {}, boundary)).map(({ bytes }) => String(bytes))).toEqual(['1'])
  })

  it('a large text field, which takes no memory and reaches no limit of multer', async () => {
    const mebibyte = Buffer.alloc(1024 * 1024, 'x')
    const files = await read([`--b\r\n${FIELD}`, mebibyte, mebibyte, `\r\n--b\r\n${file('a')}1\r\n--b--`])
    expect(files.map(({ fileName }) => fileName)).toEqual(['a'])
  })

  it('a header as large as allowed', async () => {
    const header = 'Content-Type: x/y\r\nX: '.padEnd(16 * 1024, 'x')
    expect(await readTexts(`--b\r\n${header}\r\n\r\n1\r\n--b--`)).toEqual(['=1'])
  })

  it('as many parts as allowed', async () => {
    expect(
      await readTexts(`--b\r\n${file('a')}1`.repeat(2).replace('1--', '1\r\n--') + '\r\n--b--', {
        maxParts: 2,
      }),
    ).toEqual(['a=1', 'a=1'])
  })

  const TRICKY = `x\r\n--b \r\n${file('a')}\r\n--bX\r\n-\r\r\n--b\r\n${FIELD}\r\n--b\r\n${file('c')}--b\r\n${file('d')}\r\n--b--\r\n`
  const TRICKY_FILES = ['a=\r\n--bX\r\n-\r', 'c=', 'd=']

  it('wherever the body is split in two', async () => {
    for (let at = 0; at <= TRICKY.length; at++) {
      const files = await read([TRICKY.slice(0, at), TRICKY.slice(at)].filter(half => half !== ''))
      expect(
        files.map(({ fileName, bytes }) => `${fileName}=${bytes}`),
        `split at ${at}`,
      ).toEqual(TRICKY_FILES)
    }
  })

  it('in chunks of one byte', async () => {
    const files = await read([...TRICKY])
    expect(files.map(({ fileName, bytes }) => `${fileName}=${bytes}`)).toEqual(TRICKY_FILES)
  })
})

describe('PartMender fails loudly:', () => {
  const CUT_OFF = 'The form was cut off'
  const BASE64 = 'Content-Transfer-Encoding: base64\r\nContent-Type: image/png\r\n\r\n'
  it.each<[string, string, string, string]>([
    ['an empty body', '', 'invalid_request', 'The body is not a form'],
    ['a body that is no form', '{"list":[]}', 'invalid_request', 'The body is not a form'],
    ['another boundary', `--c\r\n${file('a')}1\r\n--c--\r\n`, 'invalid_request', 'The body is not a form'],
    ['line feeds only', `--b\n${file('a')}1\n--b--\n`, 'invalid_request', 'end with LF instead of CRLF'],
    [
      'line feeds in the headers, which took the file for one of them',
      `--b\r\n${file('a').replaceAll('\r', '')}1\r\n--b--\r\n`,
      'invalid_request',
      'end with LF instead of CRLF',
    ],
    ['a body cut off in a boundary', `--b\r\n${file('a')}1\r\n--b-`, 'invalid_request', CUT_OFF],
    ['a body cut off in a file', `--b\r\n${file('a')}1`, 'invalid_request', CUT_OFF],
    ['a body cut off in a header', '--b\r\nContent-Disp', 'invalid_request', CUT_OFF],
    ['a body cut off behind a header', `--b\r\n${file('a')}`, 'invalid_request', CUT_OFF],
    ['a body cut off behind a boundary', '--b', 'invalid_request', CUT_OFF],
    [
      'a header larger than allowed',
      `--b\r\n${'X'.repeat(16 * 1024 + 1)}\r\n\r\n1\r\n--b--`,
      'invalid_request',
      'The header of part 1',
    ],
    ['a header without end', `--b\r\n${'X'.repeat(20_000)}`, 'invalid_request', 'The header of part 1'],
    [
      'more parts than allowed',
      `--b\r\n${FIELD}1\r\n`.repeat(4) + '--b--',
      'too_large',
      'The form has more than 3 parts',
    ],
    [
      'parts behind the end',
      `--b--\r\n--b\r\n${file('a')}1\r\n--b--`,
      'invalid_request',
      'The form has data after',
    ],
    ['a file in base64', `--b\r\n${BASE64}MQ==\r\n--b--`, 'invalid_request', 'The form part ""'],
  ])('%s', async (_case, body, code, message) => {
    const options = { maxParts: 3 }
    for (const chunks of [[body], [...body]]) {
      await expect(read(chunks, options)).rejects.toMatchObject({
        name: 'UploadError',
        code,
        message: expect.stringContaining(message),
      })
    }
  })

  it('attack: padding without end behind a boundary is passed on, not kept', async () => {
    let passed = 0
    const mender = new PartMender('b', { maxParts: 1 })
    mender.on('data', (bytes: Buffer) => (passed += bytes.length))
    mender.write(Buffer.from(`--b\r\n${file('a')}1\r\n--b`))
    await new Promise<unknown>(resolve => mender.write(Buffer.alloc(1024 * 1024, ' '), resolve))
    expect(passed).toBeGreaterThan(1024 * 1024)
  })

  it('attack: a text field that names the place of a file does not become that file', async () => {
    const forged = 'Content-Disposition: form-data; name="1"\r\n\r\nforged'
    expect(await readTexts(`--b\r\n${forged}\r\n--b\r\n${file('a')}1\r\n--b--`)).toEqual(['a=1'])
  })
})
