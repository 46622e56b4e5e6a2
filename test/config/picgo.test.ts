import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/interpolate.ts'
import { isPicGoConfig } from '../../src/config/parse.ts'
import { importPicGo as importFile, leaveOutUnusable } from '../../src/config/picgo/index.ts'
import { configSchema } from '../../src/config/schema.ts'
import { UPLOADERS } from '../helpers/picgo-uploaders.ts'

type Json = Record<string, unknown>

const FOLDER = new URL('../fixtures/picgo/', import.meta.url)
const FIXTURES = readdirSync(FOLDER).filter(name => name.endsWith('.json'))
const readFixture = (name: string): Json => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8'))

async function importPicGo(file: Json) {
  const { config, notes } = await importFile(file)
  return { config, notes: [...notes], providers: config['providers'] as Record<string, Record<string, Json>> }
}

/** What `config import` prints of each file, and what it reports. */
describe('a file of PicGo or PicList becomes a configuration, and notes say what was left out:', () => {
  it.each(FIXTURES)('%s', async name => {
    const file = readFixture(name)
    const problems: string[] = []
    const imported = await leaveOutUnusable(await importFile(file), (_, problem) => problems.push(problem))
    expect(file).toEqual(readFixture(name))
    expect(configSchema.safeParse(imported.config).error).toBeUndefined()
    const printed = [JSON.stringify(imported.config, undefined, 2), ...imported.notes, ...problems]
    const golden = new URL(name.replace('.json', '.txt'), FOLDER)
    await expect(`${printed.join('\n')}\n`).toMatchFileSnapshot(golden.pathname)
  })

  it.each(FIXTURES.filter(name => !/images|renaming/.test(name)))(
    'repeats no secret of %s in a note',
    async name => {
      const secrets =
        JSON.stringify(readFixture(name)).match(/\w+(?:Secret|Token|Password|Key)\b(?=")(?!":)/g) ?? []
      expect(secrets.length).toBeGreaterThan(0)
      const { notes } = await importPicGo(readFixture(name))
      for (const secret of secrets) expect(notes.join('\n')).not.toContain(secret)
    },
  )
})

describe('isPicGoConfig', () => {
  it.each([
    ...FIXTURES.map(readFixture),
    { picBed: { current: 'smms' } },
    { picBed: null },
    { server: { port: 36677 }, picBed: { uploader: 'smms' } },
    { picgoPlugins: {} },
    { uploader: { github: { configList: [] } } },
  ])('recognises file %#', value => {
    expect(isPicGoConfig(value)).toBe(true)
  })

  it.each([
    {},
    { providers: { local: { Default: { directory: '/srv', serve: true } } } },
    { server: { port: 36677 }, log: { level: 'info' } },
    { providers: {}, picBed: { uploader: 'smms' } },
    { keyTemplate: '{uuid}', uploader: { github: { configList: [] } } },
    { uploader: { github: { token: 'x' } } },
    [{ picBed: {} }],
    null,
    'picBed',
  ])('does not take %j for one of theirs', value => {
    expect(isPicGoConfig(value)).toBe(false)
  })
})

describe('whatever the file holds', () => {
  const WRONG = [null, [], [null], {}, { x: {} }, 0, -1, true, '', ' ', 'x', '\ud800', '{', '__proto__']

  function* listPaths(value: unknown, path: string[] = []): Generator<string[]> {
    if (path.length > 0) yield path
    if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) yield* listPaths(member, [...path, key])
  }

  it.each(FIXTURES)('nothing throws when any one value of %s is replaced by a wrong one', async name => {
    // Three of the wrong values for each, in turn: all of them would take a busy machine a minute.
    for (const [index, path] of [...listPaths(readFixture(name))].entries()) {
      for (const wrong of [0, 5, 10].map(more => WRONG[(index + more) % WRONG.length])) {
        const file = readFixture(name)
        const parent = path.slice(0, -1).reduce<Json>((object, key) => object[key] as Json, file)
        parent[path.at(-1) ?? ''] = wrong
        const where = `${path.join('.')} = ${JSON.stringify(wrong)}`
        const { notes } = await importPicGo(file).catch(error => expect.fail(`${where}: ${error}`))
        expect(notes.join('\n'), where).not.toMatch(/undefined|\[object/)
      }
    }
  })

  it('what looks like a variable of ours, in a password, is text', async () => {
    const { config } = await importPicGo({
      picBed: { uploader: 'smms', smms: { token: `a\${HOME}b$\${file:/etc/passwd}` } },
      settings: { serverKey: `\${KEY}` },
    })
    const fail = (path: string, message: string) => expect.fail(`${path} ${message}`)
    expect(interpolate(config, { HOME: 'wrong' }, '/', fail).value).toMatchObject({
      server: { key: `\${KEY}` },
      providers: { smms: { Default: { token: `a\${HOME}b$\${file:/etc/passwd}` } } },
    })
  })

  it('a configuration called __proto__ is like any other, and an uploader called constructor inherits nothing', async () => {
    const configList = [{ _configName: '__proto__', token: 't' }]
    const { providers } = await importPicGo({ picBed: {}, uploader: { smms: { configList } } })
    expect(Object.keys(providers['smms'] ?? {})).toEqual(['__proto__'])
    const { config, notes } = await importPicGo({ picBed: { uploader: 'constructor' } })
    expect(config).toEqual({ default: 'constructor/Default' })
    expect(notes).toHaveLength(2)
  })
})

describe('the default destination', () => {
  const github = (name: string, id: string) => ({ _configName: name, _id: id, repo: `me/${id}`, token: 't' })
  const three = [github('A', 'a'), github('B', 'b'), github('C', 'c')]
  const old = { repo: 'me/old', token: 't' }

  it.each<[string, Json | undefined, Json | undefined, string, number]>([
    ['that defaultId names', { configList: three, defaultId: 'b' }, undefined, 'B', 0],
    ['of the active copy: unknown defaultId', { configList: three, defaultId: 'x' }, three[2], 'C', 1],
    ['of the active copy: no defaultId', { configList: three }, three[1], 'B', 0],
    ['that is the first: nothing names one', { configList: three, defaultId: '' }, undefined, 'A', 0],
    ['of the active copy: empty list', { configList: [], defaultId: '' }, three[1], 'B', 0],
    ['of the active copy: no list', undefined, old, 'Default', 0],
    ['of the list: the copy differs', { configList: three }, { ...three[0], token: 'edited' }, 'A', 1],
  ])('is the one %s', async (_, store, copy, expected, count) => {
    const { config, notes } = await importPicGo({
      picBed: { uploader: 'github', current: 'imgur', ...(copy && { github: copy }) },
      uploader: { ...(store && { github: store }) },
    })
    expect(config['default']).toBe(`github/${expected}`)
    expect(config).toMatchObject({ providers: { github: { [expected]: { token: 't' } } } })
    expect(notes.filter(note => /defaultId|differs/.test(note))).toHaveLength(count)
  })

  it('is left to our own rule when no uploader is current', async () => {
    const one = await importPicGo({ picBed: { imgur: { clientId: 'c' } } })
    expect([one.config['default'], one.notes]).toEqual([undefined, []])
    const two = await importPicGo({ picBed: { github: old, imgur: { clientId: 'c' } } })
    expect(two.config).not.toHaveProperty('default')
    expect(two.notes.join()).toContain('"picBed.uploader" is missing')
  })

  it.each([
    ['is not supported', { uploader: 'picgo-cloud' }, 'PicGo Cloud accepts uploads only from PicGo'],
    ['is blocked', { uploader: 'gitee' }, 'Gitee blocks requests from other websites'],
    ['comes from a plugin', { uploader: 'x', x: { url: 'u' } }, 'there is no provider for "x"'],
    ['is that of another plugin', { uploader: 'lankong' }, 'Configure the provider "lsky" instead'],
    ['is that of another plugin', { uploader: 'minio' }, 'Configure the provider "s3" instead'],
    ['is that of another plugin', { uploader: 'alist' }, 'Configure the provider "openlist" instead'],
    ['is that of another plugin', { uploader: 'githubPlus' }, 'Configure the provider "github" instead'],
    [
      'was never filled in',
      { uploader: 'smms', smms: { token: '' } },
      'has no usable settings. Complete them',
    ],
    ['has no configuration', { uploader: 'smms' }, 'has no usable settings. Complete them'],
  ])('does not move to another destination when the current uploader %s: %j', async (_, picBed, reason) => {
    const { config, notes, providers } = await importPicGo({ picBed: { ...picBed, github: three[0] } })
    expect(Object.keys(providers)).toEqual(['github'])
    expect(config['default']).toBe(`${picBed.uploader}/Default`)
    expect(notes.at(-1)).toContain(`"picBed.uploader" is "${picBed.uploader}", which `)
    expect(notes.at(-1)).toContain(reason)
  })

  it('does not move to the S3 configuration of another uploader that has the same name', async () => {
    const { config, providers } = await importPicGo({
      picBed: { uploader: 'aws-s3', 'aws-s3-plist': { bucketName: 'private' } },
      uploader: { 'aws-s3': { configList: [{ _id: '1', _configName: 'Default' }], defaultId: '1' } },
    })
    expect(config['default']).toBe('s3/Default')
    expect(Object.keys(providers['s3'] ?? {})).toEqual(['Default-2'])
  })
})

describe('settings', () => {
  it.each<[Json, Json, number]>([
    ...([36677, '36677', ' 36677 '] as const).map((port): [Json, Json, number] => [
      { server: { port } },
      { server: { port: 36677 } },
      0,
    ]),
    ...[0, 65536, 80.5, '', true, [80], null].map((port): [Json, Json, number] => [
      { server: { port } },
      {},
      1,
    ]),
    [{ serverKey: 'a' }, { server: { key: 'a' } }, 0],
    [{ server: { secret: ' a ' } }, { server: { key: 'a' } }, 0],
    [{ serverKey: 123456 }, { server: { key: '123456' } }, 0],
    [{ serverKey: '', server: { secret: 'b' } }, { server: { key: 'b' } }, 0],
    [{ serverKey: 'a', server: { secret: 'a' } }, { server: { key: 'a' } }, 0],
    [{ serverKey: 'a', server: { secret: 'b' } }, { server: { key: 'a' } }, 1],
    [{ serverKey: null, server: { secret: null } }, {}, 0],
    [{ serverKey: ['a'] }, {}, 1],
    [{ logLevel: ['all'] }, { log: { level: 'info' } }, 0],
    [{ logLevel: ['success', 'error'] }, { log: { level: 'info' } }, 0],
    [{ logLevel: ['error', 'warn'] }, { log: { level: 'warn' } }, 0],
    [{ logLevel: 'error' }, { log: { level: 'error' } }, 0],
    [{ logLevel: ['none'] }, { log: { level: 'error' } }, 0],
    [{ logLevel: ['loud'] }, {}, 1],
    [{ logLevel: {} }, {}, 1],
  ])('%j become %j, with %d notes', async (settings, expected, count) => {
    const { config, notes } = await importPicGo({ picBed: { imgur: { clientId: 'c' } }, settings })
    const { providers: _, ...rest } = config
    expect(rest).toEqual(expected)
    expect(notes).toHaveLength(count)
  })

  it('of the server may be at the top', async () => {
    const { config } = await importPicGo({
      picBed: {},
      server: { port: '8080', host: '0.0.0.0', secret: 's' },
    })
    expect(config['server']).toEqual({ port: 8080, host: '0.0.0.0', key: 's' })
  })

  it('that are switched off get no notes', async () => {
    const { notes } = await importPicGo({
      picBed: { imgur: { clientId: 'c' }, transformer: 'base64', proxy: '' },
      settings: { urlRewrite: { rules: [{ match: 'a', replace: 'b', enable: false }] }, rename: false },
      buildIn: {
        compress: { quality: '100', isConvert: false, isConvertMap: { smms: false }, convertFormat: 'webp' },
        watermark: { isAddWatermark: false, isFullScreenWatermark: true },
      },
      picgoPlugins: { 'picgo-plugin-s3': true, 'picgo-plugin-compress': false },
    })
    expect(notes).toEqual([])
  })

  it('of the links and the gallery', async () => {
    const rules = [
      { match: '^https://raw\\.', replace: 'https://cdn.', enable: true, ignoreCase: true },
      { match: 'x', replace: 'y', enable: false },
      { match: '(', replace: 'y' },
    ]
    const uploaded = [{ imgUrl: 'https://x.example/a.png' }]
    const file = { picBed: { imgur: { clientId: 'c' } }, settings: { urlRewrite: { rules } }, uploaded }
    const { providers, notes } = await importPicGo(file)
    const urlRewrite = [{ from: '^https://raw\\.', to: 'https://cdn.', flags: 'i' }]
    expect(providers['imgur']?.['Default']).toMatchObject({ urlRewrite })
    expect(notes).toEqual([
      '"settings.urlRewrite.rules[2]" was skipped: it is not a valid rule.',
      '"uploaded" was ignored: the gallery is not imported.',
    ])
  })
})

describe('pictures', () => {
  const WATERMARK = { isAddWatermark: true, watermarkType: 'text', watermarkText: '© me' }

  async function translate(buildIn: Json) {
    const uploader = {
      github: { configList: [{ ...UPLOADERS['github'], _configName: 'a', _id: 'a' }], defaultId: 'a' },
      imgur: { configList: [{ _configName: 'b', _id: 'b', clientId: 'c' }], defaultId: 'b' },
    }
    const { config, notes, providers } = await importPicGo({
      picBed: { uploader: 'github' },
      uploader,
      buildIn,
    })
    expect(configSchema.safeParse(config).error).toBeUndefined()
    const images = (type: string, name: string) => providers[type]?.[name]?.['images']
    return {
      images: config['images'],
      github: images('github', 'a'),
      imgur: images('imgur', 'b'),
      notes: notes.filter(note => note.includes('buildIn')),
    }
  }

  it('of single uploaders and configurations become those of destinations', async () => {
    const { images, github, imgur, notes } = await translate({
      compress: { quality: 80, isRemoveExif: true, isRemoveExifMap: { imgur: false, github: true } },
      watermark: { ...WATERMARK, isAddWatermark: false, isAddWatermarkMap: { github: false } },
      list: [{ id: 'a', compress: { quality: 50 }, watermark: { isAddWatermark: true } }],
    })
    expect(images).toEqual({ quality: 80, stripMetadata: true })
    expect(imgur).toEqual({ quality: 80 })
    expect(github).toEqual({ quality: 50, stripMetadata: true, watermark: { text: '© me' } })
    expect(notes).toEqual([])
    const off = await translate({ compress: { quality: 80, qualityMap: { imgur: 100 } } })
    expect(off.imgur).toEqual({})
  })
})

describe('PicList', () => {
  const github = (name: string) => ({
    ...UPLOADERS['github'],
    _id: name,
    _configName: name,
    path: `${name}/`,
  })
  const imgur = { _id: 'h', _configName: 'Host', clientId: 'c' }

  function importList(
    settings: Json,
    { second = github('backup') as unknown, uploader = 'github', buildIn = {} } = {},
  ) {
    const picBed = { uploader: 'github', secondUploader: uploader, secondUploaderConfig: second }
    const lists = {
      github: { configList: [github('blog'), github('backup')], defaultId: 'blog' },
      imgur: { configList: [imgur], defaultId: 'h' },
    }
    return importPicGo({ picBed, settings, buildIn, uploader: lists })
  }
  const mirrorsOf = ({ providers }: { providers: Record<string, Record<string, Json>> }) =>
    Object.values(providers).flatMap(named =>
      Object.entries(named).map(([name, { mirrors }]) => `${name} > ${mirrors}`),
    )

  it("'s second uploader is a mirror of every other destination, and none of itself", async () => {
    const listed = await importList({ enableSecondUploader: true })
    expect(mirrorsOf(listed)).toEqual(['blog > github/backup', 'backup > undefined', 'Host > github/backup'])
    const other = await importList({ enableSecondUploader: true }, { second: github('other') })
    expect(mirrorsOf(other)).toContain('backup > github/other')
    const off = await importList({ enableSecondUploader: false })
    expect(mirrorsOf(off).join()).not.toContain('github/')
  })

  it.each([
    ['telegraphplist', { _id: 'x' }, 'nothing of "telegraphplist" can be used here'],
    ['github', {}, 'nothing of "github" can be used here'],
    ['', {}, 'no second uploader is chosen'],
  ])("'s second uploader %j %j is said to be left out", async (uploader, second, why) => {
    const imported = await importList({ enableSecondUploader: true }, { second, uploader })
    expect(imported.notes).toContain(`"settings.enableSecondUploader" was ignored: ${why}.`)
    expect(mirrorsOf(imported).join()).not.toContain('github/')
  })

  it.each([
    ['web-uploader', { url: 'https://img.example/100%/up?token=5%off', paramName: 'file' }, '5%off'],
    ['advancedplist', { endpoint: 'https://img.example/100%/up?key=5%off', method: 'POST' }, '5%off'],
  ])('a percent sign in a URL of %s does not end the start', async (type, options, secret) => {
    const { config } = await importPicGo({ picBed: { uploader: type, [type]: options } })
    expect(JSON.stringify(config)).toContain(secret)
  })
})
