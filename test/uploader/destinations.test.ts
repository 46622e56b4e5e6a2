import { describe, expect, it } from 'vitest'
import { canonicalType, loadProvider, PROVIDER_TYPES } from '../../src/providers/registry.ts'
import { chooseDestination, idOf, isCovered, splitId } from '../../src/uploader/destinations.ts'

const ALL = 's3/blog s3/screens local/Default local/blog webdav/nas github/a github/b'
const named = (ids: string) =>
  ids.split(' ').flatMap(id => (id === '' ? [] : [{ type: splitId(id).type, name: splitId(id).name ?? '' }]))

/** Undefined where a request does not say it. */
type Asked = readonly [picbed: string | undefined, configName: string | undefined]

interface Case {
  readonly all?: string
  readonly defaultId?: string | undefined
  readonly allowed?: string[]
}

function choose([picbed, configName]: Asked, { all = ALL, allowed, ...more }: Case = {}): string {
  const choice = { ...(picbed !== undefined && { picbed }), ...(configName !== undefined && { configName }) }
  const defaultId = 'defaultId' in more ? more.defaultId : 's3/blog'
  return idOf(chooseDestination({ destinations: named(all), defaultId }, choice, allowed))
}

const ONE: Case = { all: 'webdav/nas', defaultId: undefined }
const ALLOWED: Case = { allowed: ['s3/screens', 'webdav'] }

it.each<[...asked: Asked, id: string, given?: Case]>([
  [undefined, undefined, 's3/blog'],
  ['', '', 's3/blog'],
  ['', 'Default', 's3/blog'],
  ['s3', '', 's3/blog'],
  ['s3', 'Default', 's3/blog'],
  ['s3', 'screens', 's3/screens'],
  ['local', '', 'local/Default'],
  ['local', 'Default', 'local/Default'],
  ['local', 'blog', 'local/blog'],
  ['webdav', 'Default', 'webdav/nas'],
  ['', 'blog', 's3/blog'],
  ['', 'nas', 'webdav/nas'],
  ['aws-s3', '', 's3/blog'],
  ['aws-s3-plist', 'screens', 's3/screens'],
  ['webdavplist', 'nas', 'webdav/nas'],
  [undefined, undefined, 'webdav/nas', ONE],
  [undefined, 'Default', 'webdav/nas', ONE],
  // A provider alone is its default configuration, and a real "Default" comes before the default one.
  [undefined, undefined, 's3/Default', { all: 's3/Default s3/x local/y', defaultId: 'aws-s3' }],
  ['s3', 'Default', 's3/Default', { all: 's3/Default s3/x', defaultId: 's3/x' }],
  [undefined, 'screens', 's3/screens', ALLOWED],
  ['webdav', undefined, 'webdav/nas', ALLOWED],
])('picbed=%s&configName=%s is %s (%j)', (picbed, configName, id, given) => {
  expect(choose([picbed, configName], given)).toBe(id)
})

const NONE: Case = { all: '', defaultId: undefined }
const misspelt = (defaultId: string): Case => ({ all: 's3/Default s3/x', defaultId })
const LISTED = `Available: ${ALL.split(' ')
  .map(id => `"${id}"`)
  .join(', ')}.`
const MAY = 'Available: "s3/screens", "webdav/nas".'

it.each<[...asked: Asked, code: string, message: string, given?: Case]>([
  ['nope', undefined, 'unknown_destination', `Provider "nope" does not exist. ${LISTED}`],
  ['nope', 'blog', 'unknown_destination', `Provider "nope" does not exist. ${LISTED}`],
  ['s3', 'nope', 'unknown_destination', `s3 has no destination "nope". ${LISTED}`],
  ['s3', 'Blog', 'unknown_destination', 's3 has no destination "Blog".'],
  ['aws-s3', 'nope', 'unknown_destination', 'aws-s3 has no destination "nope".'],
  [undefined, 'nope', 'unknown_destination', 'No provider has a destination "nope".'],
  ['S3', undefined, 'unknown_destination', 'Provider "S3" does not exist.'],
  ['constructor', undefined, 'unknown_destination', 'Provider "constructor" does not exist.'],
  [
    'local',
    undefined,
    'unknown_destination',
    'Provider "local" has no destination here.',
    { all: 's3/blog' },
  ],
  ['github', undefined, 'ambiguous_destination', '"github/a", "github/b"'],
  ['github', 'Default', 'ambiguous_destination', 'such as "github/a"'],
  [
    ...([undefined, 'blog', 'ambiguous_destination'] as const),
    'Several providers have a destination "blog": "s3/blog", "local/blog". Specify one by its full name, such as "s3/blog".',
    { defaultId: 'webdav' },
  ],
  // Nothing is taken in place of what was misspelt.
  [undefined, undefined, 'unknown_destination', '', misspelt('s3/misspelt')],
  [undefined, undefined, 'unknown_destination', '', misspelt('nope')],
  [undefined, undefined, 'unknown_destination', '', misspelt('nope/blog')],
  ['s3', undefined, 'unknown_destination', '', misspelt('s3/misspelt')],
  [undefined, undefined, 'unknown_destination', '', NONE],
  ['local', undefined, 'unknown_destination', '', NONE],
  [undefined, 'x', 'unknown_destination', '', NONE],
  // Only what a key may use is named.
  [undefined, undefined, 'destination_forbidden', MAY, ALLOWED],
  ['local', undefined, 'destination_forbidden', MAY, ALLOWED],
  ['github', 'a', 'destination_forbidden', MAY, ALLOWED],
  ['nope', undefined, 'unknown_destination', `Provider "nope" does not exist. ${MAY}`, ALLOWED],
  [undefined, undefined, 'destination_forbidden', 'Available: none.', { allowed: [] }],
])('picbed=%s&configName=%s fails with %s: %s', (picbed, configName, code, message, given) => {
  expect(() => choose([picbed, configName], given)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  )
})

it.each<[string, string[] | undefined, boolean]>([
  ['s3/blog', undefined, true],
  ['s3/blog', [], false],
  ['s3/blog', ['s3'], true],
  ['s3/blog', ['s3/blog'], true],
  ['s3/blog', ['aws-s3/blog'], true],
  ['s3/blog', ['s3/Blog'], false],
  ['s3/blog', ['s3/blog/x', 'local'], false],
  ['s3/a/b', ['s3/a/b'], true],
])('%s is covered by %j: %s', (id, list, covered) => {
  const { type, name = '' } = splitId(id)
  expect(isCovered({ type, name }, list)).toBe(covered)
})

describe('the registry', () => {
  it('knows the names of PicList', () => {
    const names = ['aws-s3', 'aws-s3-plist', 'webdavplist', 'sftpplist', 'lskyplist', 'local', 'constructor']
    expect(names.map(canonicalType)).toEqual([
      ...['s3', 's3', 'webdav', 'sftp', 'lsky', 'local', 'constructor'],
    ])
  })

  it('loads its providers and no others', async () => {
    for (const type of PROVIDER_TYPES) expect((await loadProvider(type))?.type).toBe(type)
    for (const none of ['', 'nope', 'constructor', '__proto__', 'Local'])
      expect(await loadProvider(none)).toBeUndefined()
  })
})
