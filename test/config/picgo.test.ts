import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/interpolate.ts'
import { translatePicGo as translateFile } from '../../src/config/picgo/index.ts'
import { isPicGoConfig } from '../../src/config/picgo/recognise.ts'
import { configSchema } from '../../src/config/schema.ts'

type Json = Record<string, unknown>

const FIXTURES = [
  'picgo-desktop',
  'picgo-core-old',
  'picgo-core-3',
  'piclist-desktop',
  'piclist-core',
  'broken',
]

function readFixture(name: string): Json {
  return JSON.parse(readFileSync(new URL(`../fixtures/picgo/${name}.json`, import.meta.url), 'utf8'))
}

function translatePicGo(file: Json) {
  const { config, notes } = translateFile(file)
  return { config, notes }
}

function translateFixture(name: string) {
  return translatePicGo(readFixture(name))
}

/** The fixture with a new value at one path. */
function change(name: string, path: string[], value: unknown): Json {
  const file = readFixture(name)
  const parent = path.slice(0, -1).reduce<Json>((object, key) => object[key] as Json, file)
  parent[path.at(-1) ?? ''] = value
  return file
}

describe('isPicGoConfig', () => {
  it.each(FIXTURES)('recognises the fixture %s', name => {
    expect(isPicGoConfig(readFixture(name))).toBe(true)
  })

  it.each([
    { picBed: { uploader: 'smms' } },
    { picBed: { current: 'smms' } },
    { picBed: null },
    { server: { port: 36677 }, picBed: { uploader: 'smms' } },
    { picgoPlugins: {} },
    { uploader: { github: { configList: [] } } },
  ])('recognises the fragment %j', value => {
    expect(isPicGoConfig(value)).toBe(true)
  })

  it.each([
    {},
    { providers: { local: { Default: { directory: '/srv', serve: true } } } },
    { server: { port: 36677 }, log: { level: 'info' } },
    { providers: {}, picBed: { uploader: 'smms' } },
    { keyTemplate: '{uuid}', uploader: { github: { configList: [] } } },
    { uploader: 'github' },
    { uploader: { github: { token: 'x' } } },
    [{ picBed: {} }],
    null,
    'picBed',
    7,
    undefined,
  ])('does not take %j for one of theirs', value => {
    expect(isPicGoConfig(value)).toBe(false)
  })

  it.each(FIXTURES)('does not take the translation of %s for one of theirs', name => {
    expect(isPicGoConfig(translateFixture(name).config)).toBe(false)
  })
})

describe('translatePicGo whatever the file holds', () => {
  const WRONG = [null, [], [null], {}, { x: {} }, 0, -1, true, '', ' ', 'x', '\ud800', '{', '__proto__']

  function* listPaths(value: unknown, path: string[] = []): Generator<string[]> {
    if (path.length > 0) yield path
    if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) yield* listPaths(member, [...path, key])
  }

  it.each(FIXTURES)('never throws when any one value of %s is replaced by a wrong one', name => {
    for (const path of listPaths(readFixture(name))) {
      for (const wrong of WRONG) {
        const { config, notes } = translatePicGo(change(name, path, wrong))
        const where = `${path.join('.')} = ${JSON.stringify(wrong)}`
        expect(config.providers, where).toBeTypeOf('object')
        expect(notes.join('\n'), where).not.toMatch(/undefined|\[object/)
      }
    }
  })

  it.each(FIXTURES)('leaves the parsed file %s as it is', name => {
    const file = readFixture(name)
    translatePicGo(file)
    expect(file).toEqual(readFixture(name))
  })

  it.each(FIXTURES)('repeats no secret of %s in a note', name => {
    const strings: string[] = []
    JSON.stringify(readFixture(name), (_, value) => {
      if (typeof value === 'string') strings.push(value)
      return value
    })
    const secrets = strings.flatMap(value => value.match(/\w+(?:Secret|Token|Password|Key)\b/) ?? [])
    expect(secrets.length).toBeGreaterThan(0)
    const notes = translateFixture(name).notes.join('\n')
    for (const secret of secrets) expect(notes).not.toContain(secret)
  })

  it('takes what looks like a variable of ours, in a password, for text', () => {
    const smms = { token: `a\${HOME}b$\${file:/etc/passwd}`, nested: [`\${X}`] }
    const { config } = translatePicGo({
      picBed: { uploader: 'smms', smms },
      settings: { serverKey: `\${KEY}` },
    })
    const { value } = interpolate(config, { HOME: 'wrong' }, '/', (path, message) => {
      throw new Error(`${path} ${message}`)
    })
    expect(value).toEqual({
      server: { key: `\${KEY}` },
      default: 'smms/Default',
      providers: { smms: { Default: smms } },
    })
  })

  it.each(FIXTURES)('gives a configuration for %s that our own schema takes', name => {
    expect(configSchema.safeParse(translateFixture(name).config).error).toBeUndefined()
  })

  it('carries a configuration called __proto__ like any other', () => {
    const file = JSON.parse(
      '{"picBed":{"uploader":"smms"},"uploader":{"smms":{"configList":[{"_configName":"__proto__","token":"t"}]}}}',
    )
    const { config } = translatePicGo(file)
    expect(JSON.stringify(config)).toBe(
      '{"providers":{"smms":{"__proto__":{"token":"t"}}},"default":"smms/__proto__"}',
    )
  })

  it('reads the server that a file has at the top', () => {
    const { config } = translatePicGo({ picBed: {}, server: { port: '8080', host: '0.0.0.0', secret: 's' } })
    expect(config['server']).toEqual({ port: 8080, host: '0.0.0.0', key: 's' })
  })

  it.each([
    ['gitee', 'Gitee blocks requests from other websites, so images there do not show'],
    ['picgo-cloud', 'PicGo Cloud accepts uploads only from PicGo'],
  ])('says why the uploader %s has no provider', (type, reason) => {
    const { notes } = translatePicGo({ picBed: { uploader: type, [type]: { token: 't' } } })
    expect(notes).toContain(`"picBed.${type}" was skipped: ${reason}.`)
    expect(notes.at(-1)).toContain(
      `is "${type}", for which there is no provider here: choose another uploader`,
    )
  })

  it.each([
    ['lankong', 'lsky'],
    ['minio', 's3'],
    ['alist', 'openlist'],
    ['githubPlus', 'github'],
  ])('names for the plugin uploader %s the provider %s', (type, provider) => {
    const { notes } = translatePicGo({ picBed: { uploader: type, [type]: { url: 'x' } } })
    expect(notes).toContain(
      `"picBed.${type}" was skipped: its options can't be imported. Configure the provider "${provider}" instead.`,
    )
    expect(notes.at(-1)).toContain(`Configure the provider "${provider}", or choose another uploader.`)
  })

  it('says that the gallery is not imported', () => {
    const { notes } = translatePicGo({ picBed: {}, uploaded: [{ imgUrl: 'https://x.example/a.png' }] })
    expect(notes).toContain('"uploaded" was ignored: the gallery is not imported.')
  })

  it('finds nothing inherited for an uploader called constructor', () => {
    expect(translatePicGo({ picBed: { uploader: 'constructor' } })).toEqual({
      config: { providers: {}, default: 'constructor/Default' },
      notes: [
        '"picBed" has no destination that can be imported.',
        '"picBed.uploader" is "constructor", for which there is no provider here: choose another uploader.',
      ],
    })
  })
})

describe('the default destination', () => {
  const github = (name: string, id: string) => ({
    _configName: name,
    _id: id,
    repo: `someone/${id}`,
    token: 't',
  })
  const three = [github('A', 'a'), github('B', 'b'), github('C', 'c')]

  it.each([
    ['the one that defaultId names', { configList: three, defaultId: 'b' }, undefined, 'github/B', 0],
    [
      'the one that the active copy names, when defaultId is unknown',
      { configList: three, defaultId: 'x' },
      three[2],
      'github/C',
      1,
    ],
    [
      'the one that the active copy names, when defaultId is missing',
      { configList: three },
      three[1],
      'github/B',
      0,
    ],
    ['the first, when nothing names one', { configList: three, defaultId: '' }, undefined, 'github/A', 0],
    ['the active copy, when the list is empty', { configList: [], defaultId: '' }, three[1], 'github/B', 0],
    [
      'the active copy, when there is no list',
      undefined,
      { repo: 'someone/old', token: 't' },
      'github/Default',
      0,
    ],
  ])('is %s', (_, store, copy, expected, notes) => {
    const file = {
      picBed: { uploader: 'github', ...(copy && { github: copy }) },
      uploader: { ...(store && { github: store }) },
    }
    const translation = translatePicGo(file)
    expect(translation.config.default).toBe(expected)
    expect(translation.notes).toHaveLength(notes)
  })

  it('comes from the list when the active copy differs, and a note says so', () => {
    const translation = translatePicGo({
      picBed: { uploader: 'github', github: { ...github('A', 'a'), token: 'edited' } },
      uploader: { github: { configList: three, defaultId: 'a' } },
    })
    expect(translation.config.providers).toMatchObject({ github: { A: { token: 't' } } })
    expect(translation.notes).toEqual([
      '"picBed.github" was ignored: it differs from "A" in "uploader.github", which is used.',
    ])
  })

  it('is `uploader` where `current` says something else', () => {
    const picBed = { uploader: 'smms', current: 'imgur', smms: { token: 't' }, imgur: { clientId: 'c' } }
    expect(translatePicGo({ picBed }).config.default).toBe('smms/Default')
  })

  it('is left to our own rule when no uploader is current', () => {
    const one = translatePicGo({ picBed: { smms: { token: 't' } } })
    expect(one).toEqual({ config: { providers: { smms: { Default: { token: 't' } } } }, notes: [] })
    const two = translatePicGo({ picBed: { smms: { token: 't' }, imgur: { clientId: 'c' } } })
    expect(two.config).not.toHaveProperty('default')
    expect(two.notes).toEqual([expect.stringContaining('"picBed.uploader" is missing')])
  })

  it.each([
    ['is not supported', { uploader: 'picgo-cloud', github: three[0] }, 'picgo-cloud/Default'],
    [
      'comes from a plugin',
      { uploader: 'dogecloud', dogecloud: { url: 'u' }, github: three[0] },
      'dogecloud/Default',
    ],
    ['was never filled in', { uploader: 'smms', smms: { token: '' }, github: three[0] }, 'smms/Default'],
    ['has no configuration', { uploader: 'smms', github: three[0] }, 'smms/Default'],
  ])('does not move to another destination when the current uploader %s', (_, picBed, expected) => {
    const { config, notes } = translatePicGo({ picBed })
    expect(config.providers).toEqual({ github: { A: { repo: 'someone/a', token: 't' } } })
    expect(config.default).toBe(expected)
    const pattern = `^"picBed.uploader" is "${picBed.uploader}", .* choose another uploader\\.$`
    expect(notes.at(-1)).toMatch(new RegExp(pattern))
  })

  it('does not move to the S3 configuration of another uploader that has the same name', () => {
    const { config } = translatePicGo({
      picBed: { uploader: 'aws-s3', 'aws-s3-plist': { bucketName: 'private' } },
      uploader: { 'aws-s3': { configList: [{ _id: '1', _configName: 'Default' }], defaultId: '1' } },
    })
    expect(config).toMatchObject({
      default: 's3/Default',
      providers: { s3: { 'Default-2': { bucketName: 'private' } } },
    })
    expect(Object.keys((config.providers as Json).s3 as Json)).toEqual(['Default-2'])
  })
})

describe('uploaders', () => {
  it.each([
    ['aliyun', 'aliyun'],
    ['tcyun', 'tcyun'],
    ['qiniu', 'qiniu'],
    ['upyun', 'upyun'],
    ['github', 'github'],
    ['imgur', 'imgur'],
    ['smms', 'smms'],
    ['piclist', 'piclist'],
    ['webdavplist', 'webdav'],
    ['sftpplist', 'sftp'],
    ['lskyplist', 'lsky'],
    ['aws-s3', 's3'],
    ['aws-s3-plist', 's3'],
  ])('%s becomes %s with its options unchanged', (type, provider) => {
    const options = { text: ' kept ', empty: '', no: false, number: 0, nothing: null, nested: { a: [1] } }
    const bookkeeping = { _id: '1', _configName: 'Mine', _createdAt: 1, _updatedAt: 2 }
    const { config, notes } = translatePicGo({
      picBed: { uploader: type },
      uploader: { [type]: { configList: [{ ...options, ...bookkeeping }], defaultId: '1' } },
    })
    expect(config).toEqual({ default: `${provider}/Mine`, providers: { [provider]: { Mine: options } } })
    expect(notes).toEqual([])
  })
})

describe('names of files', () => {
  it.each([
    ['{filename}', '{filename}{extname}'],
    [undefined, '{filename}{extname}'],
    [
      '{Y}/{m}/{d}/{h}{i}{s}{ms}-{timestampS}{timestamp}{y}',
      '{Y}/{m}/{d}/{h}{i}{s}{ms}-{timestampS}{timestamp}{y}{extname}',
    ],
    ['/img//{md5}', 'img/{md5}{extname}'],
    ['{md5-16}{sha1}{sha256}{uuid}{ulid}', '{md5-16}{sha1}{sha256}{uuid}{ulid}{extname}'],
    ['{Str-5}-{SHA1-8}-{sha256-12}', '{str-5}-{sha1-8}-{sha256-12}{extname}'],
    [
      '{localFolder}/{localfolder:}/{localFolder:0}/{localFolder:3}-{uuid}',
      '{localFolder:1}/{localFolder:1}/{localFolder:1}/{localFolder:3}-{uuid}{extname}',
    ],
    ['{uuid}{extname}', '{uuid}{extname}'],
  ])('buildIn.rename.format %j becomes %j', (format, keyTemplate) => {
    const { config, notes } = translatePicGo({ picBed: {}, buildIn: { rename: { enable: true, format } } })
    expect(config.keyTemplate).toBe(keyTemplate)
    expect(notes.filter(note => note.includes('rename'))).toEqual([])
  })

  it.each([
    ['{filename}.{ext}', 'it has the unknown placeholder {ext}'],
    ['{Y', 'it has an unmatched brace near "{Y"'],
    ['C:\\{uuid}', 'it contains a backslash or a control character'],
    ['photo', 'without a placeholder every file would get the same name'],
    ['photo{extname}', 'without a placeholder every file would get the same name'],
    ['../{uuid}', 'it has a "." or ".." segment'],
    ['{Y}/', 'it ends with "/" instead of a file name'],
  ])('buildIn.rename.format %j is left out with a note', (format, reason) => {
    const { config, notes } = translatePicGo({ picBed: {}, buildIn: { rename: { enable: true, format } } })
    expect(config).not.toHaveProperty('keyTemplate')
    expect(notes).toContain(`"buildIn.rename.format" was ignored: ${reason}.`)
  })

  it('are not touched while renaming is switched off', () => {
    const { config } = translatePicGo({
      picBed: {},
      buildIn: { rename: { enable: false, format: '{uuid}' } },
    })
    expect(config).not.toHaveProperty('keyTemplate')
  })

  it('follow the timestamp where both renamings are on, as in PicList', () => {
    const { config } = translatePicGo({
      picBed: {},
      settings: { autoRename: true },
      buildIn: { rename: { enable: true, format: '{uuid}' } },
    })
    expect(config.keyTemplate).toBe('{Y}{m}{d}{h}{i}{s}{ms}{extname}')
  })
})

describe('settings', () => {
  const translateSettings = (settings: Json) => translatePicGo({ picBed: { smms: { token: 't' } }, settings })

  it.each([
    [36677, 36677],
    ['36677', 36677],
    [' 80 ', 80],
    [65535, 65535],
    [0, undefined],
    [65536, undefined],
    [80.5, undefined],
    ['', undefined],
    [true, undefined],
    [[80], undefined],
    [null, undefined],
  ])('a port of %j gives %j', (port, expected) => {
    const { config, notes } = translateSettings({ server: { port } })
    expect(config.server).toEqual(expected === undefined ? undefined : { port: expected })
    expect(notes).toHaveLength(expected === undefined ? 1 : 0)
  })

  it.each([
    [{ serverKey: 'a' }, 'a', 0],
    [{ server: { secret: ' a ' } }, 'a', 0],
    [{ serverKey: 123456 }, '123456', 0],
    [{ serverKey: '', server: { secret: 'b' } }, 'b', 0],
    [{ serverKey: 'a', server: { secret: 'a' } }, 'a', 0],
    [{ serverKey: 'a', server: { secret: 'b' } }, 'a', 1],
    [{ serverKey: null, server: { secret: null } }, undefined, 0],
    [{ serverKey: ['a'] }, undefined, 1],
  ])('the key of %j is %j', (settings, key, notes) => {
    const translation = translateSettings(settings)
    expect(translation.config.server).toEqual(key === undefined ? undefined : { key })
    expect(translation.notes).toHaveLength(notes)
  })

  it.each([
    [['all'], 'info', 0],
    ['all', 'info', 0],
    [['success', 'error'], 'info', 0],
    [['error', 'warn'], 'warn', 0],
    ['error', 'error', 0],
    [['none'], 'error', 1],
    [['loud'], undefined, 1],
    [{}, undefined, 1],
  ])('logLevel %j becomes %j', (logLevel, level, notes) => {
    const translation = translateSettings({ logLevel })
    expect(translation.config.log).toEqual(level === undefined ? undefined : { level })
    expect(translation.notes).toHaveLength(notes)
  })

  it('says nothing about picture processing and rewriting that are switched off', () => {
    const { notes } = translatePicGo({
      picBed: { smms: { token: 't' }, transformer: 'base64', proxy: '' },
      settings: { urlRewrite: { rules: [{ match: 'a', replace: 'b', enable: false }] }, rename: false },
      buildIn: {
        compress: { quality: '100', isConvert: false, isConvertMap: { smms: false }, convertFormat: 'webp' },
        watermark: { isAddWatermark: false, isFullScreenWatermark: true },
      },
      picgoPlugins: { 'picgo-plugin-s3': true, 'picgo-plugin-compress': false },
    })
    expect(notes).toEqual([])
  })
})
