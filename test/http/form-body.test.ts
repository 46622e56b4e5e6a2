import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { inMemory } from '../../src/body.ts'
import { formBody } from '../../src/http/form-body.ts'

const { signal } = new AbortController()
const picture = (fileName: string, field = 'file') => ({
  field,
  fileName,
  content: { ...inMemory(Buffer.from('bytes')), contentType: 'image/png' },
})

describe('a multipart body', () => {
  it('has the fields, then the files, and the length it says', async () => {
    const { read, size, contentType } = formBody([['album', 'x\ny']], [picture('b.png'), picture('ü.png')])
    const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(contentType)?.[1]
    const bytes = await buffer(read(signal))
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
      `--${boundary}`,
      'Content-Disposition: form-data; name="file"; filename="ü.png"',
      'Content-Type: image/png',
      '',
      'bytes',
      `--${boundary}--`,
      '',
    ])
    expect(size).toBe(bytes.length)
  })

  it('cannot be broken out of by the name of a file or a field', async () => {
    const evil = 'a"\r\nContent-Type: text/html\r\n\r\n.png'
    const { read } = formBody([[evil, '']], [picture(evil, evil)])
    const text = (await buffer(read(signal))).toString()
    const escaped = 'a%22%0D%0AContent-Type: text/html%0D%0A%0D%0A.png'
    expect(text).toContain(`name="${escaped}"; filename="${escaped}"\r\nContent-Type: image/png\r\n`)
    expect(text).not.toContain('\r\nContent-Type: text/html')
  })

  it('has another boundary each time', () => {
    const types = [1, 2].map(() => formBody([], [picture('b.png')]).contentType)
    expect(new Set(types).size).toBe(2)
  })
})
