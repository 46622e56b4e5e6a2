import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectStored } from '../helpers/expect-answer.ts'
import { type Answer, post } from '../helpers/form.ts'
import { makePicture, makePictures } from '../helpers/picture.ts'
import { formBody, type RawPart, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const KEY_NEEDED = { server: { key: 'k1' }, auth: { loopbackExempt: false } }
const form = (boundary: string): string => `Content-Type: multipart/form-data; boundary=${boundary}`

interface Stack {
  headers: string[]
  boundary: string
  /** Header lines of a part with the file `图 "1" +.png`. */
  head: string
  line?: string
  end?: string
}

const NAME = '图 "1" +.png'

/** A form as each stack writes it; the boundary stands in the header as that stack spells it. */
const STACKS: Record<string, Stack> = {
  '.NET HttpClient: quoted boundary, bare field, a word of RFC 2047 beside filename*': {
    line: 'POST /upload/ HTTP/1.1',
    boundary: '0f8fad5b-d9cb-469f-a165-70867728950e',
    headers: [form('"0f8fad5b-d9cb-469f-a165-70867728950e"')],
    head: `Content-Type: image/png\nContent-Disposition: form-data; name=file; filename="=?utf-8?B?${Buffer.from(NAME).toString('base64')}?="; filename*=utf-8''${encodeURIComponent(NAME)}`,
  },
  '.NET HttpClient with an ASCII name: no quotes anywhere': {
    boundary: 'b',
    headers: [form('b')],
    head: `Content-Disposition: form-data; name=file; filename=${NAME}`,
  },
  'Qt QHttpMultiPart: a quoted boundary with "/" and "="': {
    boundary: 'boundary_.oOo._MTA4/NzI5=OTE0/Mjc=',
    headers: [
      form('"boundary_.oOo._MTA4/NzI5=OTE0/Mjc="'),
      'User-Agent: Mozilla/5.0',
      'Accept-Language: zh-CN,en,*',
    ],
    head: `Content-Type: image/png\nContent-Disposition: form-data; name="file"; filename="${NAME}"`,
  },
  'Qt with the same boundary and no quotes': {
    boundary: 'boundary_.oOo._MTA4/NzI5=OTE0/Mjc=',
    headers: [form('boundary_.oOo._MTA4/NzI5=OTE0/Mjc=')],
    head: `Content-Disposition: form-data; name="file"; filename="${NAME}"`,
  },
  'Android OkHttp: a length for the part, the key without "Bearer"': {
    boundary: '3f1d2c4b-5a69-4788-9c0d-e1f203142536',
    headers: [
      'Authorization: k1',
      form('3f1d2c4b-5a69-4788-9c0d-e1f203142536'),
      'Accept-Encoding: gzip',
      'User-Agent: okhttp/4.12.0',
    ],
    head: `Content-Disposition: form-data; name="file"; filename="${NAME.replaceAll('"', '%22')}"\nContent-Type: image/png\nContent-Length: 1069`,
  },
  'Go mime/multipart: backslashes before quotes, 60 digits': {
    boundary: '5b1e6c0a9f3d47c28e10b2a4d6f8091a3c5e7f90b1d2e3f40516273849a0',
    headers: [
      'User-Agent: Go-http-client/1.1',
      form('5b1e6c0a9f3d47c28e10b2a4d6f8091a3c5e7f90b1d2e3f40516273849a0'),
    ],
    head: `Content-Disposition: form-data; name="file"; filename="${NAME.replaceAll('"', '\\"')}"\nContent-Type: application/octet-stream`,
  },
  'java.net.http: an offer of HTTP/2 with the POST': {
    boundary: 'Java11Boundary',
    headers: [
      'Connection: Upgrade, HTTP2-Settings',
      'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      'Upgrade: h2c',
      'User-Agent: Java-http-client/17.0.15',
      form('Java11Boundary'),
    ],
    head: `Content-Disposition: form-data; name="file"; filename="${NAME}"`,
  },
  'Spring RestTemplate: words of RFC 2047 and a charset in the header': {
    boundary: 'Xk2pQ9-vR4tY7_wZ1',
    headers: [
      'Accept: application/json, application/*+json',
      'Content-Type: multipart/form-data;charset=UTF-8;boundary=Xk2pQ9-vR4tY7_wZ1',
    ],
    head: `Content-Disposition: form-data; name="file"; filename="=?UTF-8?Q?=E5=9B=BE_=221=22_+.png?="\nContent-Type: image/png\nContent-Length: 1069`,
  },
  'Alamofire: a boundary with a dot, every header in its order': {
    boundary: 'alamofire.boundary.9f0c3e1b7a2d4856',
    headers: [
      form('alamofire.boundary.9f0c3e1b7a2d4856'),
      'Accept-Encoding: br;q=1.0, gzip;q=0.9, deflate;q=0.8',
    ],
    head: `Content-Disposition: form-data; name="files[]"; filename="${NAME}"\nContent-Type: image/png`,
  },
  'a hand-made form without a line end behind its last boundary': {
    boundary: 'X',
    end: '',
    headers: ['content-type: Multipart/Form-Data; Boundary=X'],
    head: `CONTENT-DISPOSITION: form-data; NAME="file"; FILENAME="${NAME}"\nCONTENT-TYPE: image/png`,
  },
}

describe('forms as HTTP stacks write them', () => {
  it.each(Object.entries(STACKS))('%s', async (_name, { line, headers, boundary, head, end }) => {
    const app = await startApp({ config: headers.includes('Authorization: k1') ? KEY_NEEDED : {} })
    const files = makePictures(2)
    const body = formBody(
      boundary,
      files.map((file): RawPart => [head, file]),
      end,
    )
    const answer = await sendUpload(app.url, { headers, body, ...(line && { line }) })
    await expectStored(answer, files)
    expect(answer.items.map(item => item.origin)).toEqual([NAME, NAME])
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  })

  it('undici, whole and as a stream of unknown length', async () => {
    const app = await startApp()
    const file = makePicture()
    const body = new FormData()
    body.append('file', new File([new Uint8Array(file)], NAME, { type: 'image/png' }))
    const answer = await post(`${app.url}/upload`, { body })
    await expectStored(answer, [file])
    expect(answer.items[0]?.origin).toBe(NAME)

    const head = 'Content-Disposition: form-data; name="file"; filename="a.png"'
    const pieces =
      formBody('X', [[head, file]])
        .toString('latin1')
        .match(/.{1,97}/gs) ?? []
    const stream = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(Buffer.from(piece, 'latin1'))
        controller.close()
      },
    })
    const headers = { 'Content-Type': 'multipart/form-data; boundary=X' }
    await expectStored(await post(`${app.url}/upload`, { body: stream, headers, duplex: 'half' }), [file])
  })
})

describe('JSON as HTTP stacks write it', () => {
  it('Node http.request writes chunks over a connection that it keeps', async () => {
    const app = await startApp()
    const files = makePictures(3)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const [index, file] of files.entries()) {
      const path = join(app.directory, `图${index}.png`)
      await writeFile(path, file)
      const body = Buffer.from(JSON.stringify({ list: [path] }))
      const { answer, reused } = await new Promise<{ answer: Answer; reused: boolean }>((resolve, reject) => {
        const sent = request(`${app.url}/upload`, { method: 'POST', agent }, res => {
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

  it('java.net.http offers HTTP/2 with JSON as well', async () => {
    const app = await startApp()
    const file = makePicture()
    const headers = [
      'Connection: Upgrade, HTTP2-Settings',
      'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      'Upgrade: h2c',
    ]
    const list = [`data:;base64,${file.toString('base64')}`]
    await expectStored(await sendUpload(app.url, { headers, body: JSON.stringify({ list }) }), [file])
  })

  it('a Go program formats Windows paths into JSON with %s: refused, and not as our fault', async () => {
    const app = await startApp()
    const body = '{"list":["C:\\Users\\me\\图.png"]}'
    const answer = await sendUpload(app.url, { headers: ['User-Agent: Go-http-client/1.1'], body })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer).not.toHaveProperty('result')
  })
})
