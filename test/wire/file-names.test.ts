import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expectStored } from '../helpers/expect-answer.ts'
import { formOf, list, post } from '../helpers/form.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, type RawPart, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const LONG = `${'长'.repeat(100)}${'x'.repeat(200)}.png`
const BOUNDARY = '----WebKitFormBoundaryePkpFF7tjBAqx29L'
const HEADERS = [`Content-Type: multipart/form-data; boundary=${BOUNDARY}`]

/** A server that stores under the cleaned name alone, so that it can be seen. */
const plain = shareApp({ config: { keyTemplate: '{uuid}/{filename}{extname}' } })

const part = (disposition: string, file: Buffer): RawPart => [
  `Content-Disposition: form-data; name="file"; ${disposition}\nContent-Type: image/png`,
  file,
]

/** What stands behind `form-data; name="file"; `, the origin in the answer, the name that is stored. */
const NAMES: [disposition: string, origin: string, stored: string][] = [
  ['filename="图片.png"', '图片.png', '图片.png'],
  ['filename="😀👨‍👩‍👧.png"', '😀👨‍👩‍👧.png', '😀👨_👩_👧.png'],
  ['filename="%41.png"', '%41.png', '%41.png'],
  ['filename="100%.png"', '100%.png', '100%.png'],
  ['filename="a%2Fb%00.png"', 'a%2Fb%00.png', 'a%2Fb%00.png'],
  ['filename="with space  two.png"', 'with space  two.png', 'with space  two.png'],
  ['filename="a#b?c&d=e;f+g.png"', 'a#b?c&d=e;f+g.png', 'a#b_c&d=e;f+g.png'],
  ['filename="cafe\u0301.png"', 'cafe\u0301.png', 'caf\u00e9.png'],
  ['filename="%22quoted%22.png"', '"quoted".png', '_quoted_.png'],
  ['filename="\\"quoted\\".png"', '"quoted".png', '_quoted_.png'],
  ['filename="a"b.png"', 'a"b.png', 'a_b.png'],
  ['filename=""a".png"', '"a".png', '_a_.png'],
  [`filename="it's.png"`, "it's.png", "it's.png"],
  ['filename="a;b.png"; x=y', 'a;b.png', 'a;b.png'],
  ['filename=bare name.png', 'bare name.png', 'bare name.png'],
  [`filename*=UTF-8''%E5%9B%BE%22%2541.png`, '图"%41.png', '图_%41.png'],
  [`filename="wrong.png"; filename*=utf-8'zh'%E5%9B%BE.png`, '图.png', '图.png'],
  [`filename*=UTF-8''%E5%9B%BE.png; filename="wrong.png"`, '图.png', '图.png'],
  ['filename="=?UTF-8?B?5Zu+54mHLnBuZw==?="', '图片.png', '图片.png'],
  ['filename="=?utf-8?Q?a_=E5=9B=BE.png?="', 'a 图.png', 'a 图.png'],
  ['filename="../../../../etc/x.png"', 'x.png', 'x.png'],
  ['filename="..\\..\\x.png"', 'x.png', 'x.png'],
  ['filename="/etc/absolute.png"', 'absolute.png', 'absolute.png'],
  ['filename="C:\\Users\\me\\win.png"', 'win.png', 'win.png'],
  ['filename="C:/Users/me/win.png"', 'win.png', 'win.png'],
  ['filename="\\\\nas\\share\\unc.png"', 'unc.png', 'unc.png'],
  ['filename=".."', '..', '_...png'],
  ['filename="."', '.', '_..png'],
  ['filename="CON.png"', 'CON.png', '_CON.png'],
  ['filename="aux"', 'aux', '_aux.png'],
  ['filename=".hidden"', '.hidden', '_.hidden.png'],
  ['filename="blob"', 'blob', 'blob.png'],
  ['filename="-"', '-', '-.png'],
  ['filename="trailing. ."', 'trailing. .', 'trailing___.png'],
  ['filename="a\0b\x01.png"', 'a\0b\x01.png', 'a_b_.png'],
  ['filename="evil\u202egnp.exe"', 'evil\u202egnp.exe', 'evil_gnp.exe'],
  ['filename="folder/"', '', 'file.png'],
  ['filename="wrong-extension.jpg"', 'wrong-extension.jpg', 'wrong-extension.jpg'],
]

describe('the name of a form part', () => {
  it.each(NAMES)('%j', async (disposition, origin, stored) => {
    const app = plain()
    const file = makePicture()
    const answer = await sendUpload(app.url, {
      headers: HEADERS,
      body: formBody(BOUNDARY, [part(disposition, file)]),
    })
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin, fileName: stored, contentType: 'image/png' })
    const last = decodeURIComponent(new URL(answer.result[0]!).pathname.split('/').at(-1) ?? '')
    expect(last).toBe(stored)
  })

  it('never makes one of them get lost or swapped: all of them in one request', async () => {
    const app = plain()
    const files = makePictures(NAMES.length)
    const parts = NAMES.map(([disposition], index) => part(disposition, files[index]!))
    const answer = await sendUpload(app.url, { headers: HEADERS, body: formBody(BOUNDARY, parts) })
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual(NAMES.map(([, origin]) => origin))
    expect(answer.items.map(item => item.fileName)).toEqual(NAMES.map(([, , stored]) => stored))
  })

  it('is cut before its extension when it has 300 characters', async () => {
    const app = plain()
    const file = makePicture()
    const body = formBody(BOUNDARY, [part(`filename="${LONG}"`, file)])
    const answer = await sendUpload(app.url, { headers: HEADERS, body })
    await expectStored(answer, [file])
    const { origin, fileName } = answer.items[0]!
    expect(origin).toBe(LONG)
    expect(fileName).toMatch(/^长+\.png$/)
    expect(Buffer.byteLength(fileName)).toBeLessThanOrEqual(200)
  })

  it('may be bytes that are no UTF-8', async () => {
    const app = plain()
    const file = makePicture()
    const head = Buffer.from(
      'Content-Disposition: form-data; name="file"; filename="\xff\xfe\xb2\xe2.png"',
      'latin1',
    )
    const answer = await sendUpload(app.url, { headers: HEADERS, body: formBody(BOUNDARY, [[head, file]]) })
    await expectStored(answer, [file])
    expect(answer.items[0]?.fileName).toMatch(/\.png$/)
  })

  it('survives the way through a real FormData', async () => {
    const app = plain()
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
    const form = formOf(Object.fromEntries(names.map((name, index) => [name, files[index]!])))
    const answer = await post(`${app.url}/upload`, { body: form })
    await expectStored(answer, files)
    // A backslash separates folders.
    const expected = names.map(name => name.replace('f\\', ''))
    expect(answer.items.map(item => item.origin)).toEqual(expected)
  })
})

describe('several parts with one name', () => {
  it.each([
    ['default', undefined],
    ['bare', '{filename}{extname}'],
  ])('and different bytes stay apart with the %s key template', async (_which, keyTemplate) => {
    const app = await startApp({ config: keyTemplate ? { keyTemplate } : {} })
    const files = makePictures(12)
    const parts = files.map(file => part('filename="image.png"', file))
    const answer = await sendUpload(app.url, { headers: HEADERS, body: formBody(BOUNDARY, parts) })
    expect(answer.result).toHaveLength(files.length)
    if (!keyTemplate) await expectStored(answer, files)
  })

  it('and the same bytes get a link each', async () => {
    const app = await startApp()
    const file = makePicture()
    const parts = Array.from({ length: 5 }, () => part('filename="image.png"', file))
    const answer = await sendUpload(app.url, { headers: HEADERS, body: formBody(BOUNDARY, parts) })
    await expectStored(answer, [file, file, file, file, file])
  })
})

describe('the name of a path', () => {
  it('is used as it is: nothing in it is decoded', async () => {
    const app = await startApp()
    const names = [
      '图片.png',
      '😀.png',
      '%41.png',
      '100%.png',
      'a b.png',
      'a#b?c&d.png',
      'e\u0301.png',
      '"q".png',
      "it's.png",
      'back\\slash.png',
      '*.png',
      '$HOME.png',
      '`id`.png',
      '-rf',
      'line\nfeed.png',
      '~',
      'CON.png',
      'a',
      '.hidden',
      `${'长'.repeat(80)}.png`,
      '[1].png',
      '{a,b}.png',
      'C:x.png',
    ]
    const files = makePictures(names.length)
    const paths = names.map(name => join(app.directory, name))
    await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
    const answer = await post(`${app.url}/upload`, list(...paths))
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual(paths)
  })
})
