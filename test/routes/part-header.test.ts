import { describe, expect, it } from 'vitest'
import { type PartHeader, parsePartHeader } from '../../src/routes/part-header.ts'

function parse(...lines: (string | Buffer)[]): PartHeader {
  const bytes = lines.map(line => (typeof line === 'string' ? Buffer.from(line) : line))
  return parsePartHeader(
    Buffer.concat(bytes.flatMap((line, i) => (i === 0 ? [line] : [Buffer.from('\r\n'), line]))),
  )
}

/** The file name read from a Content-Disposition. */
function nameIn(disposition: string | Buffer): string {
  const header = parse(Buffer.concat([Buffer.from('Content-Disposition: '), Buffer.from(disposition)]))
  expect(header.isFile).toBe(true)
  return header.fileName
}

describe('parsePartHeader decodes names:', () => {
  it.each([
    ['curl 7.81 and newer', 'name="file"; filename="say %22hi%22.png"', 'say "hi".png'],
    ['curl before 7.81', 'name="file"; filename="say \\"hi\\".png"', 'say "hi".png'],
    ['a browser, a name of two lines', 'name="file"; filename="a%0D%0Ab%0b.png"', 'a\r\nb%0b.png'],
    ['an escaped path', 'name="list"; filename="C:\\\\Users\\\\x\\\\a.png"', 'a.png'],
    ['a share', 'name="list"; filename="\\\\host\\share\\a.png"', 'a.png'],
    ['percent signs stay', 'filename="50%41 %2F %0C.png"', '50%41 %2F %0C.png'],
    ['a name of several words that are not quoted', 'filename=my pic.png', 'my pic.png'],
    ['semicolons in a value that is not quoted', 'filename=a;b.png', 'a;b.png'],
    ['semicolons in a quoted value', 'filename="a; b;c.png"; x=1', 'a; b;c.png'],
    ['what looks like a parameter in a quoted value', 'filename="a; name=b.png"', 'a; name=b.png'],
    ['an equals sign', 'filename="a=b.png"', 'a=b.png'],
    ['escaped quotes before what looks like a parameter', 'filename="a\\"; b=c.png"', 'a"; b=c.png'],
    ['a raw quote at both ends', 'filename=""a.png""', '"a.png"'],
    ['a closing quote that is missing', 'filename="a.png', 'a.png'],
    ['a semicolon at the end', 'filename="a.png" ; ', 'a.png'],
    ['a semicolon at the end of a value that is not quoted', 'filename=a.png;', 'a.png'],
    ['blanks around the equals sign', 'FileName = "a.png"', 'a.png'],
    ['no blank behind the semicolon', 'name="f";filename="a.png";x=y', 'a.png'],
    ['a semicolon that is missing', 'name="f" filename="a.png"', 'a.png'],
    ['a field name that ends with a backslash', 'name="a\\"; filename="b.png"', 'b.png'],
    ['a field name with quotes', 'name="a\\"b"c"; filename="b.png"', 'b.png'],
    ['a field name that is missing', 'filename="a.png"', 'a.png'],
    ['filename* wins, whatever the order', 'filename*=UTF-8\'\'b.png; filename="a.png"', 'b.png'],
    ['filename* in ISO-8859-1 with a language', "filename*=ISO-8859-1'fr'%E9t%E9.png", 'été.png'],
    ['filename* in quotes', 'filename*="UTF-8\'\'%C3%A9.png"', 'é.png'],
    ['filename* with bad escapes', "filename*=UTF-8''100%_%zz_%4.png", '100%_%zz_%4.png'],
    ['filename* with bytes that are not UTF-8', "filename*=UTF-8''%E9.png", 'é.png'],
    ['filename* in an unknown character set', "filename*=x-none''%C3%A9.png", 'é.png'],
    ['filename* with raw UTF-8', "filename*=UTF-8''图%20.png", '图 .png'],
    ['filename* without a character set', 'filename*=a%20b.png', 'a b.png'],
    ['filename* with quote signs of its own', "filename*=it's a dog's.png", "it's a dog's.png"],
    ['filename* that is empty yields to filename', 'filename*=UTF-8\'\'; filename="a.png"', 'a.png'],
    ['filename* with an encoded path', "filename*=UTF-8''..%2F..%5Ca.png", 'a.png'],
    ['filename* in pieces', 'filename*0*=UTF-8\'\'%E5%9B; filename*1*=%BE; filename*2=".png"', '图.png'],
    ['an encoded word in Q', 'filename="=?ISO-8859-1?Q?=E9t=E9_1.png?="', 'été 1.png'],
    ['an encoded word amid other text', 'filename="x =?utf-8?q?=C3=A9?= y.png"', 'x é y.png'],
    ['two encoded words', 'filename="=?utf-8?Q?a?= =?utf-8?B?w6kucG5n?="', 'aé.png'],
    ['an encoded word whose base64 holds a slash', 'filename="=?utf-8?B?Pz8/LnBuZw==?="', '???.png'],
    ['an encoded word in GB 18030', 'filename="=?gb18030?B?zbwucG5n?="', '图.png'],
    ['an encoded word in an unknown character set', 'filename="=?x-none?Q?=C3=A9.png?="', 'é.png'],
    [
      'no more encoded words than a name can have',
      `filename="${'=?a?q?x?='.repeat(40)}.png"`,
      `${'x'.repeat(30)}${'=?a?q?x?='.repeat(10)}.png`,
    ],
    ['what only looks like an encoded word', 'filename="=?=?.png"', '=?=?.png'],
    ['a name that ends with a separator', 'filename="C:\\dir\\"', ''],
    ['parent directories', 'filename="../../etc/passwd"', 'passwd'],
  ])('%s', (_case, parameters, expected) => {
    expect(nameIn(`form-data; ${parameters}`)).toBe(expected)
    expect(nameIn(parameters)).toBe(expected)
  })

  it('reads bytes that are not UTF-8 as Latin-1', () => {
    expect(nameIn(Buffer.from('form-data; name="f"; filename="\xe9t\xe9.png"', 'latin1'))).toBe('été.png')
  })

  it('keeps a last letter whose UTF-8 ends with a byte that Latin-1 takes for a blank', () => {
    expect(nameIn('form-data; filename=voilà')).toBe('voilà')
  })

  it('joins folded lines', () => {
    const header = parse('Content-Disposition: form-data;', '\tname="f";', '  filename="a b.png"')
    expect(header.fileName).toBe('a b.png')
  })

  it('takes line ends without carriage return and blanks before the colon', () => {
    const header = parsePartHeader(
      Buffer.from('Content-Type : image/png\nContent-Disposition : x; filename=a.png'),
    )
    expect(header).toMatchObject({ fileName: 'a.png', contentType: 'image/png' })
  })

  it.each([
    ['quotes', 'filename="' + '"'.repeat(16_000)],
    ['blanks', 'filename="a"' + ' '.repeat(16_000) + 'x'],
    ['parameters', 'a=b;'.repeat(4_000)],
    ['beginnings of encoded words', 'filename="' + '=?a?q?'.repeat(2_600)],
  ])('attack: a header of 16 KB full of %s takes no time', (_what, parameters) => {
    // Quadratic time would take longer than the time limit of the test.
    for (let i = 0; i < 100; i++) parse(`Content-Disposition: form-data; ${parameters}`)
  })
})

describe('parsePartHeader tells files from text fields:', () => {
  const FIELD = 'Content-Disposition: form-data; name="x"'
  it.each<[string, string[], Partial<PartHeader>]>([
    ['a text field', [FIELD], { isFile: false, contentType: '' }],
    [
      'a text field with a type',
      [FIELD, 'Content-Type: Text/Plain; charset=utf-8'],
      { isFile: false, contentType: 'text/plain' },
    ],
    [
      'a named file of type text/plain',
      [`${FIELD}; filename="a.txt"`, 'Content-Type: text/plain'],
      { isFile: true, fileName: 'a.txt' },
    ],
    [
      'a typed part without a name',
      [FIELD, 'Content-Type: Image/PNG; x=y'],
      { isFile: true, fileName: '', contentType: 'image/png', mayBeEmptyInput: false },
    ],
    [
      'a typed part without Content-Disposition',
      ['Content-Type: image/png'],
      { isFile: true, mayBeEmptyInput: false },
    ],
    [
      'a disposition of another kind',
      ['Content-Disposition: attachment; filename=a.png'],
      { isFile: true, fileName: 'a.png' },
    ],
    [
      'an empty input of a browser',
      [`${FIELD}; filename=""`, 'Content-Type: application/octet-stream'],
      { isFile: true, fileName: '', mayBeEmptyInput: true },
    ],
    ['an empty name without quotes', [`${FIELD}; filename=`], { isFile: true, mayBeEmptyInput: true }],
    ['an empty extended name', [`${FIELD}; filename*=UTF-8''`], { isFile: true, mayBeEmptyInput: true }],
    [
      'a path without last component',
      [`${FIELD}; filename="a/"`],
      { isFile: true, fileName: '', mayBeEmptyInput: false },
    ],
    ['no header at all', [''], { isFile: false }],
    ['a line without colon', ['nonsense', `${FIELD}; filename=a`], { isFile: true, fileName: 'a' }],
  ])('%s', (_case, lines, expected) => {
    expect(parse(...lines)).toMatchObject(expected)
  })
})

describe('parsePartHeader and Content-Transfer-Encoding:', () => {
  const FILE = 'Content-Disposition: form-data; name="x"; filename="a.png"'

  it.each(['base64', 'BASE64', 'quoted-printable'])(
    'refuses a file in %s, which would be stored wrong',
    encoding => {
      expect(() => parse(FILE, `Content-Transfer-Encoding: ${encoding}`)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          message: expect.stringMatching(new RegExp(`"a.png" has "Content-Transfer-Encoding: ${encoding}"`)),
        }),
      )
    },
  )

  it.each(['binary', '8bit', '7bit', 'Binary'])('takes a file in %s', encoding => {
    expect(parse(FILE, `content-transfer-encoding: ${encoding}`).fileName).toBe('a.png')
  })

  it('takes a text field in any encoding, since it is ignored', () => {
    expect(
      parse('Content-Disposition: form-data; name="x"', 'Content-Transfer-Encoding: base64').isFile,
    ).toBe(false)
  })
})
