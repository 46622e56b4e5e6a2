import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { makeMultipartBody, makeRawBody } from '../../../../src/providers/shared/form-host/multipart-body.ts'
import { objectOf } from '../../../helpers/provider-contract.ts'

const object = objectOf('a/b.png', Buffer.from('bytes'), 'image/png')
const never = () => new AbortController().signal
const file = { field: 'file', fileName: 'b.png' }

describe('a multipart body', () => {
  it('has the fields, then the file, and the length it says', async () => {
    const { chunks, length, contentType } = makeMultipartBody(object, [['album', 'x\ny']], file)
    const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(contentType)?.[1]
    const bytes = await buffer(chunks(never()))
    expect(bytes.toString().split('\r\n')).toEqual([
      `--${boundary}`,
      'Content-Disposition: form-data; name="album"',
      '',
      'x',
      'y',
      `--${boundary}`,
      'Content-Disposition: form-data; name="file"; filename="b.png"',
      'Content-Type: image/png',
      '',
      'bytes',
      `--${boundary}--`,
      '',
    ])
    expect(length).toBe(bytes.length)
  })

  it('cannot be broken out of by the name of a file or a field', async () => {
    const evil = 'a"\r\nContent-Type: text/html\r\n\r\n.png'
    const { chunks } = makeMultipartBody(object, [[evil, '']], { field: evil, fileName: evil })
    const text = (await buffer(chunks(never()))).toString()
    const escaped = 'a%22%0D%0AContent-Type: text/html%0D%0A%0D%0A.png'
    expect(text).toContain(`name="${escaped}"; filename="${escaped}"\r\nContent-Type: image/png\r\n`)
    expect(text).not.toContain('\r\nContent-Type: text/html')
  })

  it('has another boundary each time', () => {
    const types = [1, 2].map(() => makeMultipartBody(object, [], file).contentType)
    expect(new Set(types).size).toBe(2)
  })
})

describe('a body', () => {
  it('of bytes alone is these bytes, none included', async () => {
    expect((await buffer(makeRawBody(object).chunks(never()))).toString()).toBe('bytes')
    expect(makeRawBody(object)).toMatchObject({ length: 5, contentType: 'image/png' })
    expect((await buffer(makeRawBody(objectOf('a', Buffer.alloc(0))).chunks(never()))).length).toBe(0)
  })

  it.each([4, 6])('that is not %i bytes long, as announced, fails instead of going out', async size => {
    await expect(buffer(makeRawBody({ ...object, size }).chunks(never()))).rejects.toThrow(
      '"a/b.png" has another size',
    )
  })

  it('that is longer than announced never sends the rest, which would be taken for another request', async () => {
    const sent: Buffer[] = []
    const send = async () => {
      for await (const chunk of makeRawBody({ ...object, size: 4 }).chunks(never())) sent.push(chunk)
    }
    await expect(send()).rejects.toThrow('another size')
    expect(Buffer.concat(sent).length).toBe(0)
  })

  it('closes what it reads from when it is given up, and opens nothing before it is read', async () => {
    const opened: Readable[] = []
    const stalled = {
      ...object,
      stream: () => {
        const stream = new Readable({ read() {} })
        opened.push(stream)
        return stream
      },
    }
    const stop = new AbortController()
    const chunks = makeRawBody(stalled).chunks(stop.signal)
    expect(opened).toHaveLength(0)
    const reading = chunks.next()
    await nextTurn()
    stop.abort(new Error('given up'))
    await expect(reading).rejects.toThrow('given up')
    expect(opened.map(one => one.destroyed)).toEqual([true])
  })
})
