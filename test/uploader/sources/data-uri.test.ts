import { describe, expect, it } from 'vitest'
import { UploadError } from '../../../src/errors.ts'
import { decodeDataUri } from '../../../src/uploader/sources/data-uri.ts'

const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
const base64 = ALL_BYTES.toString('base64')
const escaped = [...ALL_BYTES].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')

const READ: [what: string, uri: string, bytes: Buffer][] = [
  ['base64', `data:image/png;base64,${base64}`, ALL_BYTES],
  ['base64 without a media type', `data:;base64,${base64}`, ALL_BYTES],
  ['base64 after parameters', `data:image/png;name=a.png;charset=utf-8;base64,${base64}`, ALL_BYTES],
  ['base64 before a parameter', `data:image/png;base64;charset=utf-8,${base64}`, ALL_BYTES],
  ['any letter case', `DATA:IMAGE/PNG;BASE64,${base64}`, ALL_BYTES],
  ['spaces around the word base64', `data:image/png; base64 ,${base64}`, ALL_BYTES],
  ['base64url', `data:;base64,${ALL_BYTES.toString('base64url')}`, ALL_BYTES],
  ['base64 without padding', 'data:;base64,YQ', Buffer.from('a')],
  ['base64 with padding', 'data:;base64,YQ==', Buffer.from('a')],
  ['base64 in lines', `data:;base64,\r\n ${base64.replace(/.{20}/g, '$&\r\n\t')} `, ALL_BYTES],
  ['percent-encoded base64', `data:;base64,${encodeURIComponent(base64)}`, ALL_BYTES],
  ['empty base64', 'data:image/png;base64,', Buffer.alloc(0)],
  ['percent encoding of every byte', `data:application/octet-stream,${escaped}`, ALL_BYTES],
  ['upper case escapes', `data:,${escaped.toUpperCase()}`, ALL_BYTES],
  ['nothing at all', 'data:,', Buffer.alloc(0)],
  ['plain text with a second comma', 'data:text/plain,a,b%2Cc', Buffer.from('a,b,c')],
  ['text beyond ASCII', 'data:text/plain;charset=utf-8,é%C3%A9世', Buffer.from('éé世')],
  ['an SVG written as it is', 'data:image/svg+xml,<svg fill="#fff"/>', Buffer.from('<svg fill="#fff"/>')],
  ['a percent sign that begins no escape', 'data:,100%, 5%z9 %4', Buffer.from('100%, 5%z9 %4')],
  ['base64 as a mere part of a parameter', 'data:text/plain;x=base64,YQ==', Buffer.from('YQ==')],
  ['a plus sign as it is', 'data:,a+b', Buffer.from('a+b')],
]

const REFUSED: [what: string, uri: string][] = [
  ['no comma', 'data:image/png;base64'],
  ['another scheme', 'date:,a'],
  ['an empty string', ''],
  ['a foreign character', 'data:;base64,YWJj*GVm'],
  ['text after the padding', 'data:;base64,YQ==YQ=='],
  ['padding that is too short', 'data:;base64,YQ='],
  ['padding that is too long', 'data:;base64,YQ==='],
  ['padding alone', 'data:;base64,=='],
  ['a length that cannot be', 'data:;base64,YWJjZ'],
  ['a broken escape', 'data:;base64,YQ%3'],
  ['an escape of a foreign byte', 'data:;base64,YWJj%00GVm'],
  ['a letter beyond ASCII', 'data:;base64,YWJjéGVm'],
  ['a fragment', 'data:;base64,YWJj#top'],
]

function failure(uri: string): UploadError {
  try {
    decodeDataUri(uri)
  } catch (error) {
    if (error instanceof UploadError) return error
    throw error
  }
  throw new Error('It was accepted.')
}

describe('decodeDataUri', () => {
  it.each(READ)('reads %s', (_, uri, bytes) => {
    expect(decodeDataUri(uri).bytes.equals(bytes)).toBe(true)
  })

  it.each(REFUSED)('refuses %s', (_, uri) => {
    expect(failure(uri).code).toBe('invalid_request')
  })

  it('names a refused URI by its head and repeats neither its data nor an address in it', () => {
    expect(failure('data:image/png;base64,SECRET*').message).toContain('"data:image/png;base64,…"')
    expect(failure('data:image/png;base64,SECRET*').message).not.toContain('SECRET')
    expect(failure('data:http://example.com/"\n;base64,*').message).toContain(
      '"data:http:/example.com/__;base64,…"',
    )
    expect(failure('http://example.com/a').message).not.toMatch(/https?:\/\//)
  })

  it('reads 12 MiB without running out of stack', () => {
    const bytes = Buffer.alloc(12 * 1024 * 1024, 0xa5)
    expect(decodeDataUri(`data:;base64,${bytes.toString('base64')}`).bytes.equals(bytes)).toBe(true)
    expect(failure(`data:;base64,${bytes.toString('base64')}*`).code).toBe('invalid_request')
  })
})
