import { describe, expect, it } from 'vitest'
import { canonicalType, loadProvider, PROVIDER_TYPES } from '../../src/providers/registry.ts'
import {
  chooseDestination,
  type DestinationChoice,
  idOf,
  isCovered,
  splitId,
} from '../../src/uploader/destinations.ts'

const named = (...ids: string[]) =>
  ids.map(id => ({ type: id.split('/')[0] as string, name: id.slice(id.indexOf('/') + 1) }))

const ALL = named(
  's3/blog',
  's3/screens',
  'local/Default',
  'local/blog',
  'webdav/nas',
  'github/a',
  'github/b',
)

const choose = (
  choice: DestinationChoice,
  all = ALL,
  defaultId: string | null = 's3/blog',
  allowed?: string[],
) => idOf(chooseDestination(all, defaultId ?? undefined, choice, allowed))

describe('chooseDestination', () => {
  it.each<[string, string, string]>([
    ['', '', 's3/blog'],
    ['', 'Default', 's3/blog'],
    ['s3', '', 's3/blog'],
    ['s3', 'Default', 's3/blog'],
    ['s3', 'screens', 's3/screens'],
    ['local', '', 'local/Default'],
    ['local', 'Default', 'local/Default'],
    ['local', 'blog', 'local/blog'],
    ['webdav', '', 'webdav/nas'],
    ['webdav', 'Default', 'webdav/nas'],
    ['', 'blog', 's3/blog'],
    ['', 'screens', 's3/screens'],
    ['', 'nas', 'webdav/nas'],
    ['aws-s3', '', 's3/blog'],
    ['aws-s3-plist', 'screens', 's3/screens'],
    ['webdavplist', 'nas', 'webdav/nas'],
  ])('picbed=%s&configName=%s is %s', (picbed, configName, id) => {
    expect(choose({ picbed, configName })).toBe(id)
    if (picbed === '' && configName === '') expect(choose({})).toBe(id)
  })

  it.each<[DestinationChoice, string]>([
    [{ picbed: 'nope' }, 'Provider "nope" does not exist.'],
    [{ picbed: 'nope', configName: 'blog' }, 'Provider "nope" does not exist.'],
    [{ picbed: 's3', configName: 'nope' }, 's3 has no destination "nope".'],
    [{ picbed: 's3', configName: 'Blog' }, 's3 has no destination "Blog".'],
    [{ picbed: 'aws-s3', configName: 'nope' }, 'aws-s3 has no destination "nope".'],
    [{ configName: 'nope' }, 'No provider has a destination "nope".'],
    [{ picbed: 'S3' }, 'Provider "S3" does not exist.'],
    [{ picbed: 'constructor' }, 'Provider "constructor" does not exist.'],
  ])('%j is unknown, and what exists is listed', (choice, message) => {
    expect(() => choose(choice)).toThrow(
      expect.objectContaining({
        code: 'unknown_destination',
        message: `${message} Available: ${ALL.map(one => `"${idOf(one)}"`).join(', ')}.`,
      }),
    )
  })

  it('tells a provider without a configuration from one that does not exist', () => {
    const all = named('s3/blog')
    expect(() => choose({ picbed: 'local' }, all)).toThrow('Provider "local" has no destination here.')
  })

  it.each<[DestinationChoice, string[]]>([
    [{ picbed: 'github' }, ['"github/a"', '"github/b"', 'such as "github/a"']],
    [{ picbed: 'github', configName: 'Default' }, ['"github/a"', '"github/b"']],
  ])('%j is ambiguous, and the candidates are listed', (choice, parts) => {
    for (const part of parts)
      expect(() => choose(choice)).toThrow(
        expect.objectContaining({ code: 'ambiguous_destination', message: expect.stringContaining(part) }),
      )
  })

  it('a name that several providers have, but not the default one, is ambiguous', () => {
    expect(() => choose({ configName: 'blog' }, ALL, 'webdav')).toThrow(
      expect.objectContaining({
        code: 'ambiguous_destination',
        message:
          'Several providers have a destination "blog": "s3/blog", "local/blog". Specify one by its full name, such as "s3/blog".',
      }),
    )
  })

  it('without the setting "default" takes the only one', () => {
    expect(choose({}, named('webdav/nas'), null)).toBe('webdav/nas')
    expect(choose({ configName: 'Default' }, named('webdav/nas'), null)).toBe('webdav/nas')
  })

  it.each(['s3', 'aws-s3'])('the default %s means the default configuration of that provider', defaultId => {
    expect(choose({}, named('s3/Default', 's3/x', 'local/y'), defaultId)).toBe('s3/Default')
  })

  it.each(['s3/misspelt', 'nope', 'nope/blog'])(
    'never falls back when the setting "default" is %s',
    defaultId => {
      expect(() => choose({}, named('s3/Default', 's3/x'), defaultId)).toThrow(
        expect.objectContaining({ code: 'unknown_destination' }),
      )
    },
  )

  it('never takes another configuration for a misspelt default of the same provider', () => {
    expect(() => choose({ picbed: 's3' }, named('s3/Default', 's3/x'), 's3/misspelt')).toThrow(
      expect.objectContaining({ code: 'unknown_destination' }),
    )
  })

  it('takes a configuration that is really called "Default" before the one that is the default', () => {
    expect(choose({ picbed: 's3', configName: 'Default' }, named('s3/Default', 's3/x'), 's3/x')).toBe(
      's3/Default',
    )
  })

  it.each([{}, { picbed: 'local' }, { configName: 'x' }])(
    'with no configuration at all %j is unknown',
    choice => {
      expect(() => choose(choice, [], null)).toThrow(expect.objectContaining({ code: 'unknown_destination' }))
    },
  )

  it('forbids what a key may not use, and names only what it may', () => {
    const allowed = ['s3/screens', 'webdav']
    expect(choose({ configName: 'screens' }, ALL, 's3/blog', allowed)).toBe('s3/screens')
    expect(choose({ picbed: 'webdav' }, ALL, 's3/blog', allowed)).toBe('webdav/nas')
    for (const choice of [{}, { picbed: 'local' }, { picbed: 'github', configName: 'a' }])
      expect(() => choose(choice, ALL, 's3/blog', allowed)).toThrow(
        expect.objectContaining({
          code: 'destination_forbidden',
          message: expect.stringMatching(/Available: "s3\/screens", "webdav\/nas"\.$/),
        }),
      )
    expect(() => choose({ picbed: 'nope' }, ALL, 's3/blog', allowed)).toThrow(
      'Provider "nope" does not exist. Available: "s3/screens", "webdav/nas".',
    )
  })

  it('a key that may use nothing may use nothing', () => {
    expect(() => choose({}, ALL, 's3/blog', [])).toThrow(
      expect.objectContaining({
        code: 'destination_forbidden',
        message: expect.stringMatching(/Available: none\.$/),
      }),
    )
  })
})

describe('isCovered', () => {
  it.each<[string, string[] | undefined, boolean]>([
    ['s3/blog', undefined, true],
    ['s3/blog', [], false],
    ['s3/blog', ['s3'], true],
    ['s3/blog', ['s3/blog'], true],
    ['s3/blog', ['aws-s3/blog'], true],
    ['s3/blog', ['s3/Blog'], false],
    ['s3/blog', ['s3/blog/x', 'local'], false],
    ['s3/a/b', ['s3/a/b'], true],
  ])('%s by %j: %s', (id, list, covered) => {
    const { type, name = '' } = splitId(id)
    expect(isCovered({ type, name }, list)).toBe(covered)
  })
})

describe('the registry', () => {
  it.each([
    ['aws-s3', 's3'],
    ['aws-s3-plist', 's3'],
    ['webdavplist', 'webdav'],
    ['sftpplist', 'sftp'],
    ['lskyplist', 'lsky'],
    ['local', 'local'],
    ['github', 'github'],
    ['constructor', 'constructor'],
  ])('knows %s as %s', (alias, type) => {
    expect(canonicalType(alias)).toBe(type)
  })

  it('loads its providers and no others', async () => {
    for (const type of PROVIDER_TYPES) expect((await loadProvider(type))?.type).toBe(type)
    for (const none of ['', 'nope', 'constructor', '__proto__', 'Local'])
      expect(await loadProvider(none)).toBeUndefined()
  })
})
