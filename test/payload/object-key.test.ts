import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createPayloads, type Payload } from '../../src/payload/index.ts'
import { parseKeyTemplate } from '../../src/payload/object-key.ts'
import { createSpool } from '../../src/payload/spool.ts'
import { makeDirectory } from '../helpers/directory.ts'

const PNG = Buffer.from('\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR and more', 'latin1')
const NOW = new Date(2026, 0, 9, 3, 4, 5, 6)

async function makePayload(name: string, folders: string[] = [], bytes = PNG): Promise<Payload> {
  const spool = createSpool(join(await makeDirectory(), 'spool'))
  return createPayloads().read([bytes] as never, { name, folders, spool, limit: 1e9 })
}

const render = async (template: string, name = 'pic.png', folders: string[] = []) =>
  parseKeyTemplate(template)(await makePayload(name, folders), NOW)

const hash = (algorithm: string) => createHash(algorithm).update(PNG).digest('hex')

describe('a key template', () => {
  it.each<[string, string]>([
    ['{Y}-{y}-{m}-{d} {h}:{i}:{s}.{ms}', '2026-26-01-09 03:04:05.006'],
    ['{timestamp}', String(NOW.getTime())],
    ['{timestampS}', String(Math.floor(NOW.getTime() / 1000))],
    ['{md5}', hash('md5')],
    ['{md5-16}', hash('md5').slice(0, 16)],
    ['{md5-1}', hash('md5').slice(0, 1)],
    ['{sha1}', hash('sha1')],
    ['{sha1-7}', hash('sha1').slice(0, 7)],
    ['{sha256}', hash('sha256')],
    ['{sha256-8}', hash('sha256').slice(0, 8)],
    ['{sha256-64}', hash('sha256')],
    ['{filename}', 'pic'],
    ['{extname}', '.png'],
    ['{filename}{extname}', 'pic.png'],
    ['img/{Y}/{m}/{filename}{extname}', 'img/2026/01/pic.png'],
    ['日本/{filename} x{extname}', '日本/pic x.png'],
    ['constant.png', 'constant.png'],
    ['a//{Y}///b', 'a/2026/b'],
    [' a / b ', 'a/b'],
  ])('%s gives %s', async (template, key) => {
    expect(await render(template)).toBe(key)
  })

  it.each<[string, RegExp]>([
    ['{uuid}', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
    ['{ulid}', /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/],
    ['{str-1}', /^[0-9A-Za-z]$/],
    ['{str-20}', /^[0-9A-Za-z]{20}$/],
    ['{str-64}', /^[0-9A-Za-z]{64}$/],
  ])('%s gives something new each time', async (template, pattern) => {
    const made = parseKeyTemplate(template)
    const payload = await makePayload('a')
    const keys = await Promise.all(Array.from({ length: 20 }, () => made(payload, NOW)))
    for (const key of keys) expect(key).toMatch(pattern)
    expect(new Set(keys).size).toBeGreaterThan(1)
  })

  it.each(['{uuid}', '{ulid}', '{str-64}', '{uuid}-{uuid}', '{timestamp}{ms}-{str-4}'])(
    '%s gives the same each time with a seed, and something else for other bytes or another seed',
    async template => {
      const made = parseKeyTemplate(template)
      const [a, b] = [await makePayload('a'), { ...(await makePayload('a')), sha256: 'other' }]
      const keyOf = (payload: Payload, seed: string) => made(payload, NOW, { seed })
      const key = await keyOf(a, 'seed 0')
      expect(await keyOf(a, 'seed 0')).toBe(key)
      for (const other of [await keyOf(b, 'seed 0'), await keyOf(a, 'seed 1')]) expect(other).not.toBe(key)
      const [first, second] = key.match(/.{36}/g) ?? []
      if (template === '{uuid}-{uuid}') expect(second).not.toBe(first)
    },
  )

  it('puts the time at the front of an ulid, so that they sort by it', async () => {
    const made = parseKeyTemplate('{ulid}')
    const payload = await makePayload('a')
    expect((await made(payload, new Date(0))).slice(0, 10)).toBe('0000000000')
    expect((await made(payload, new Date(1469922850259))).slice(0, 10)).toBe('01ARZ3NDEK')
    const keys = [
      await made(payload, new Date(1)),
      await made(payload, new Date(2 ** 40)),
      await made(payload, NOW),
    ]
    expect(keys.toSorted()).toEqual([keys[0], keys[1], keys[2]])
  })

  it.each<[string, string[], string]>([
    ['{localFolder:1}/{filename}', ['home', 'me', 'Trip'], 'Trip/pic'],
    ['{localFolder:2}/{filename}', ['home', 'me', 'Trip'], 'me/Trip/pic'],
    ['{localFolder:9}/{filename}', ['home', 'me'], 'home/me/pic'],
    ['{localFolder:2}/{filename}', [], 'pic'],
    ['{localFolder:2}-{filename}', ['C:', 'a*b'], 'C_/a_b-pic'],
    ['{localFolder:2}/{filename}', ['..', 'CON'], '_../_CON/pic'],
  ])('%s of a file in %j gives %s', async (template, folders, key) => {
    expect(await render(template, 'pic.png', folders)).toBe(key)
  })

  it.each<[user: string | undefined, string]>([
    ['bob', 'bob/pic'],
    ['alice@example.com', 'alice@example.com/pic'],
    ['CORP\\bob', 'bob-HASH/pic'],
    ['../bob', 'bob-HASH/pic'],
    ['..', '_..-HASH/pic'],
    ['.ssh', '_.ssh-HASH/pic'],
    ['a:b', 'a_b-HASH/pic'],
    ['a_b', 'a_b/pic'],
    ['x'.repeat(255), `${'x'.repeat(200)}-HASH/pic`],
    [undefined, 'pic'],
  ])('{user} of %j gives %s, with a hash if cleaning changed it', async (user, key) => {
    const made = await parseKeyTemplate('{user}/{filename}')(await makePayload('pic'), NOW, { user })
    expect(made.replace(/-[0-9a-f]{6}(?=\/)/, '-HASH')).toBe(key)
  })

  it('{user} of two people differs, also where their cleaned names are the same', async () => {
    const made = parseKeyTemplate('{user}')
    const keyOf = async (user: string) => made(await makePayload('a'), NOW, { user })
    expect(await keyOf('a:b')).not.toBe(await keyOf('a*b'))
  })

  it.each<[string, string]>([
    ['../../etc/passwd', 'passwd.png'],
    ['C:\\a\\b.png', 'b.png'],
    ['a/b\u0000c.png', 'b_c.png'],
    ['..', '_...png'],
    ['', 'file.png'],
  ])('a file called %j cannot leave its folder: %s', async (name, key) => {
    expect(await render('up/{filename}{extname}', name)).toBe(`up/${key}`)
  })

  it.each<[string, string, string]>([
    ['{extname}', 'a', '.png'],
    ['{localFolder:1}', 'pic.png', 'pic.png'],
    ['{localFolder:1}/ {localFolder:1}', 'pic.png', 'pic.png'],
    ['.{localFolder:1}./x', 'pic.png', '_../x'],
  ])('%s never gives an empty or hidden way up', async (template, name, key) => {
    expect(await render(template, name)).toBe(key)
  })

  it.each([
    '{filename}-{sha256}{extname}',
    '{filename}{filename}{extname}',
    'x/{filename}-{md5}-{uuid}{extname}',
  ])('a long name is cut, not refused, where %s would be too long for a disk', async template => {
    for (const name of [`${'a'.repeat(300)}.png`, `${'日'.repeat(100)}.png`, '😀'.repeat(60)]) {
      const key = await render(template, name)
      for (const segment of key.split('/')) expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(245)
      expect(key).toMatch(/^(?:x\/)?(?:a|日|😀)+.*\.png$/u)
      expect(key.isWellFormed()).toBe(true)
    }
    expect(await render('{filename}-{sha256}{extname}', `${'a'.repeat(300)}.png`)).toContain(hash('sha256'))
  })
})

describe('a key template is refused', () => {
  it.each<[string, string]>([
    ['', 'is empty'],
    ['   ', 'is empty'],
    ['/', 'ends with "/"'],
    ['/a', 'starts with "/"'],
    ['{Y}/', 'ends with "/"'],
    ['{Y}/ ', 'ends with "/"'],
    ['..', '"." or ".." segment'],
    ['a/../b', '"." or ".." segment'],
    ['./{filename}', '"." or ".." segment'],
    ['a\\b', 'backslash'],
    ['a\u0000b', 'control character'],
    ['a\nb', 'control character'],
    ['{filename', 'unmatched brace near "{filename"'],
    ['filename}', 'unmatched brace'],
    ['{{filename}}', 'unmatched brace'],
    ['{}', 'unknown placeholder {}'],
    ['{Filename}', 'unknown placeholder {Filename}'],
    ['{md5-0}', '{md5-0}: the number must be 1 to 32'],
    ['{md5-33}', '{md5-33}: the number must be 1 to 32'],
    ['{sha1-41}', '{sha1-41}: the number must be 1 to 40'],
    ['{sha256-65}', '{sha256-65}: the number must be 1 to 64'],
    ['{sha256-}', 'unknown placeholder {sha256-}'],
    ['{str-65}', '{str-65}: the number must be 1 to 64'],
    ['{str}', 'unknown placeholder {str}'],
    ['{localFolder}', 'unknown placeholder {localFolder}'],
    ['{localFolder:0}', 'unknown placeholder {localFolder:0}'],
    ['{constructor}', 'unknown placeholder {constructor}'],
    ['{ filename }', 'unknown placeholder { filename }'],
  ])('%j %s', (template, reason) => {
    expect(() => parseKeyTemplate(template)).toThrow(reason)
  })
})
