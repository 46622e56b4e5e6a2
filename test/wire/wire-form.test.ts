import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { expectFailure, expectLinks, expectStored } from '../helpers/expect-answer.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, type RawPart, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const B = 'X-BOUNDARY'
const FORM = `Content-Type: multipart/form-data; boundary=${B}`
const PIC = makePicture()

const filePart = (name = 'a.png', bytes: string | Uint8Array = PIC, field = 'file'): RawPart => [
  `Content-Disposition: form-data; name="${field}"; filename="${name}"\nContent-Type: image/png`,
  bytes,
]
const textPart = (name = 'note', bytes = 'text'): RawPart => [
  `Content-Disposition: form-data; name="${name}"`,
  bytes,
]
const nameless = (type: string): RawPart => [
  `Content-Disposition: form-data; name="file"\nContent-Type: ${type}`,
  PIC,
]
const pdf = Buffer.from('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n', 'latin1')

describe('POST /upload with a form that has files', () => {
  it.each<[string, RawPart[], (string | Uint8Array)[]]>([
    ['field "files"', [filePart('a.png', PIC, 'files')], [PIC]],
    ['field "file"', [filePart()], [PIC]],
    ['field "list"', [filePart('a.png', PIC, 'list')], [PIC]],
    ['any other field', [filePart('a.png', PIC, '图[0][x]')], [PIC]],
    ['an empty field name', [filePart('a.png', PIC, '')], [PIC]],
    ['no field name', [['Content-Disposition: form-data; filename="a.png"', PIC]], [PIC]],
    ['a field of 300 characters', [filePart('a.png', PIC, 'f'.repeat(300))], [PIC]],
    [
      '"file", "files" and "other"',
      ['file', 'files', 'other'].map(f => filePart('a.png', PIC, f)),
      [PIC, PIC, PIC],
    ],
    [
      '60 text fields and a file',
      [...Array.from({ length: 60 }, (_, i) => textPart(`t${i}`)), filePart()],
      [PIC],
    ],
    ['a text field of 200 kB', [textPart('t', 'x'.repeat(200_000)), filePart()], [PIC]],
    ['an empty file with a name', [filePart('empty.png', '')], ['']],
    ['filename="" and bytes', [filePart('')], [PIC]],
    ['filename="" without bytes beside a file', [filePart('', ''), filePart()], [PIC]],
    ['no file name but image/png', [nameless('image/png')], [PIC]],
    ['no file name but application/octet-stream', [nameless('application/octet-stream')], [PIC]],
    ['a PDF', [filePart('a.pdf', pdf)], [pdf]],
    [
      'bytes that look like a boundary',
      [filePart('a', `--${B}x\r\n--${B}-\r\n\r\n--`)],
      [`--${B}x\r\n--${B}-\r\n\r\n--`],
    ],
    ['line ends at both ends', [filePart('a', '\r\n\r\nx\r\n')], ['\r\n\r\nx\r\n']],
    ['no Content-Disposition but a type', [['Content-Type: image/png', PIC]], [PIC]],
    [
      'a nested type under a name',
      [['Content-Disposition: form-data; name="f"; filename="a.mht"\nContent-Type: multipart/related', 'x']],
      ['x'],
    ],
  ])('%s', async (_what, parts, stored) => {
    const app = await startApp()
    await expectStored(await sendUpload(app.url, { headers: [FORM], body: formBody(B, parts) }), stored)
    const temporary = (await app.files()).filter(name => !name.startsWith('data/upload-server/files/'))
    expect(temporary).toEqual([])
  })

  it.each([
    ['MULTIPART/FORM-DATA; BOUNDARY=X-BOUNDARY'],
    ['multipart/form-data;boundary="X-BOUNDARY"'],
    ['multipart/form-data; charset=utf-8; boundary=X-BOUNDARY;'],
  ])('the type %s', async type => {
    const app = await startApp()
    const request = { headers: [`content-type: ${type}`], body: formBody(B, [filePart()]) }
    await expectStored(await sendUpload(app.url, request), [PIC])
  })

  it('text around the form, and blanks behind its boundaries', async () => {
    const app = await startApp()
    const form = formBody(B, [filePart()]).toString('latin1').replace(`--${B}\r\n`, `--${B} \t\r\n`)
    const body = Buffer.from(`preamble\r\n${form}epilogue\r\n`, 'latin1')
    await expectStored(await sendUpload(app.url, { headers: [FORM], body }), [PIC])
  })

  it('20 MB', async () => {
    const app = await startApp()
    const file = makePicture(20_000_000)
    await expectStored(
      await sendUpload(app.url, { headers: [FORM], body: formBody(B, [filePart('a', file)]) }),
      [file],
    )
  })

  it('100 files, as many as limits.files allows', async () => {
    const app = await startApp()
    const files = makePictures(100, 10)
    const body = formBody(
      B,
      files.map(file => filePart('same.png', file)),
    )
    await expectStored(await sendUpload(app.url, { headers: [FORM], body }), files)
  })
})

describe('POST /upload with a form that is refused', () => {
  const form = formBody(B, [filePart()])
  it.each<[string, string[], string | Uint8Array, number, string]>([
    ['no boundary', ['Content-Type: multipart/form-data'], form, 400, 'invalid_request'],
    ['another boundary', ['Content-Type: multipart/form-data; boundary=Y'], form, 400, 'invalid_request'],
    ['garbage for a body', [FORM], 'garbage', 400, 'invalid_request'],
    ['an empty body', [FORM], '', 400, 'invalid_request'],
    ['JSON for a body', [FORM], '{"list":[]}', 400, 'invalid_request'],
    ['its end missing', [FORM], form.subarray(0, -B.length), 400, 'invalid_request'],
    ['its end missing within a file', [FORM], form.subarray(0, 500), 400, 'invalid_request'],
    ['its end missing within a header', [FORM], form.subarray(0, 40), 400, 'invalid_request'],
    ['no parts', [FORM], formBody(B, []), 400, 'no_file'],
    ['a text field alone', [FORM], formBody(B, [textPart()]), 400, 'no_file'],
    [
      'a text part labelled text/plain',
      [FORM],
      formBody(B, [nameless('text/plain; charset=utf-8')]),
      400,
      'no_file',
    ],
    ['filename="" without bytes', [FORM], formBody(B, [filePart('', '')]), 400, 'no_file'],
    [
      '120 files',
      [FORM],
      formBody(
        B,
        Array.from({ length: 120 }, () => filePart()),
      ),
      413,
      'too_large',
    ],
    [
      '2000 text fields',
      [FORM],
      formBody(
        B,
        Array.from({ length: 2000 }, () => textPart()),
      ),
      413,
      'too_large',
    ],
    ['gzip around it', [FORM, 'Content-Encoding: gzip'], gzipSync(form), 400, 'invalid_request'],
    [
      'base64 in a part',
      [FORM],
      formBody(B, [[`${filePart()[0]}\nContent-Transfer-Encoding: base64`, 'AAAA']]),
      400,
      'invalid_request',
    ],
    [
      'a form inside the form',
      [FORM],
      formBody(B, [nameless('multipart/mixed; boundary=Y')]),
      400,
      'invalid_request',
    ],
    ['a header of 20 kB', [FORM], formBody(B, [filePart('n'.repeat(20_000))]), 400, 'invalid_request'],
    ['picbed=unknown', [FORM], form, 400, 'unknown_destination'],
  ])('%s', async (what, headers, body, status, code) => {
    const app = await startApp()
    const line = what.startsWith('picbed') ? `POST /upload?${what} HTTP/1.1` : 'POST /upload HTTP/1.1'
    const answer = await sendUpload(app.url, { line, headers, body })
    expectFailure(answer, status, code)
    expect(answer.errors).toEqual([])
    expect(await app.files(), 'nothing is kept').toEqual([])
    await expectStored(await sendUpload(app.url, { headers: [FORM], body: form }), [PIC])
  })

  it('files over limits.fileSize alone: the others are stored', async () => {
    const app = await startApp({ config: { limits: { fileSize: '5000B' } } })
    const [first, exact, last] = [makePicture(), Buffer.alloc(5000, 'y'), makePicture()]
    const body = formBody(B, [
      filePart('1.png', first),
      filePart('big.png', Buffer.alloc(5001, 'x')),
      filePart('exact.txt', exact),
      filePart('bigger.png', Buffer.alloc(300_000, 'x')),
      filePart('3.png', last),
    ])
    const answer = await sendUpload(app.url, { headers: [FORM], body })
    expectFailure(answer, 413, 'too_large')
    expect(answer.errors).toMatchObject([
      { index: 1, origin: 'big.png', code: 'too_large' },
      { index: 3, origin: 'bigger.png', code: 'too_large' },
    ])
    expect(answer.items.map(item => item.index)).toEqual([0, 2, 4])
    await expectLinks(answer.result, [first, exact, last])
    expect(await app.files()).toHaveLength(3)
  })

  it('a client that goes away within a file: nothing of it stays', async () => {
    const app = await startApp()
    const body = formBody(B, [filePart('1.png'), filePart('2.png', makePicture(3_000_000))])
    const { port, host } = new URL(app.url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(
      `POST /upload HTTP/1.1\r\nHost: ${host}\r\n${FORM}\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    socket.write(body.subarray(0, 2_000_000))
    await vi.waitUntil(async () => (await app.files()).length > 0, { timeout: 5000, interval: 5 })
    socket.destroy()
    await once(socket, 'close')
    await vi.waitFor(async () => expect(await app.files()).toEqual([]), { timeout: 5000 })
    await expectStored(await sendUpload(app.url, { headers: [FORM], body: formBody(B, [filePart()]) }), [PIC])
  })
})
