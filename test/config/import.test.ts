import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importPicGo } from '../../src/config/import.ts'
import { loadConfig } from '../../src/config/load.ts'
import { leaveOutUnusable } from '../../src/config/unusable.ts'
import { canonicalType } from '../../src/providers/registry.ts'
import { openDestinations } from '../../src/uploader/open.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { UPLOADERS } from '../helpers/picgo-uploaders.ts'

function fileWith(types: readonly string[], more: object = {}) {
  const uploader = Object.fromEntries(
    types.map(type => [
      type,
      {
        configList: [{ _id: `id-${type}`, _configName: 'Mine', ...UPLOADERS[type] }],
        defaultId: `id-${type}`,
      },
    ]),
  )
  return { picBed: { uploader: types[0], current: types[0] }, uploader, ...more }
}

async function load(value: object) {
  const directory = await makeDirectory()
  const file = join(directory, 'data.json')
  await writeFile(file, JSON.stringify(value))
  return loadConfig({ env: { XDG_DATA_HOME: directory }, platform: 'linux', cwd: directory, file })
}

describe('a file of PicGo or PicList', () => {
  it('with every uploader is read and opened as it is', async () => {
    const config = await load(fileWith(Object.keys(UPLOADERS)))
    expect(config.settings.default).toBe('aliyun/Mine')
    expect(new Set(config.destinations.map(one => one.type))).toEqual(
      new Set(Object.keys(UPLOADERS).map(canonicalType)),
    )
    const opened = await openDestinations(config.destinations, config.settings.keyTemplate, () => {})
    await Promise.all(opened.map(one => one.target.close?.()))
    expect(opened).toHaveLength(Object.keys(UPLOADERS).length)
  })

  it('has equal names replace each other, as there, unless the name holds the content', async () => {
    const rename = (format: string) => ({ buildIn: { rename: { enable: true, format } } })
    for (const [format, onConflict] of [
      ['{filename}', 'replace'],
      ['{filename}-{md5}', undefined],
    ] as const) {
      const config = await load(fileWith(['github', 'local'], rename(format)))
      const chosen = config.destinations.map(({ common }) => common.onConflict)
      expect(chosen).toEqual([onConflict, onConflict])
    }
  })

  it.each(Object.keys(UPLOADERS))('with %s alone makes it the default destination', async type => {
    const config = await load(fileWith([type]))
    expect(config.destinations).toHaveLength(1)
    expect(config.destinations[0]?.name).toBe('Mine')
  })

  it.each(Object.keys(UPLOADERS))(
    'with %s left unfinished says which option is missing, without a stack',
    async type => {
      const broken = fileWith([type])
      const [first] = Object.values(broken.uploader)
      const [one] = first!.configList as Record<string, unknown>[]
      const kept = ['_id', '_configName', Object.keys(UPLOADERS[type]!)[1]!]
      for (const name of Object.keys(one!)) if (!kept.includes(name)) one![name] = ''
      const failure = await load(broken).then(
        () => undefined,
        (error: Error) => error,
      )
      if (failure === undefined) return // nothing of it is needed
      expect(failure.name).toBe('ConfigError')
      expect(failure.message).toMatch(/providers\.|picBed/)
    },
  )

  it('keeps folders and renaming', async () => {
    const { config } = await importPicGo(
      fileWith(['github'], { buildIn: { rename: { enable: true, format: '{Y}-{md5-16}' } } }),
    )
    expect(config).toMatchObject({
      providers: { github: { Mine: { keyTemplate: 'img/{Y}-{md5-16}{extname}' } } },
    })
  })

  it('keeps its rules for links', async () => {
    const rules = [
      { match: '^https://raw\\.', replace: 'https://cdn.', enable: true, ignoreCase: true },
      { match: 'x', replace: 'y', enable: false },
      { match: '(', replace: 'y' },
    ]
    const { config, notes } = await importPicGo(
      fileWith(['github', 'local'], { settings: { urlRewrite: { rules } } }),
    )
    const urlRewrite = [{ from: '^https://raw\\.', to: 'https://cdn.', flags: 'i' }]
    expect(config).toMatchObject({
      providers: { github: { Mine: { urlRewrite } }, local: { Mine: { urlRewrite } } },
    })
    expect(notes.join()).toContain('the rule "(" was skipped')
  })
})

describe('PicList', () => {
  const github = (name: string, more: object = {}) => ({
    _id: name,
    _configName: name,
    repo: 'me/img',
    branch: 'main',
    token: 'secret',
    path: `${name}/`,
    ...more,
  })
  const smms = { _id: 's', _configName: 'Host', token: 'secret' }
  const file = (more: object, second: object = github('backup')) => ({
    picBed: {
      uploader: 'github',
      github: github('blog'),
      secondUploader: 'github',
      secondUploaderId: 'backup',
      secondUploaderConfig: second,
    },
    uploader: {
      github: { configList: [github('blog'), github('backup')], defaultId: 'blog' },
      smms: { configList: [smms], defaultId: 's' },
    },
    ...more,
  })
  const imported = async (old: Record<string, unknown>) => {
    const { config, notes } = await leaveOutUnusable(await importPicGo(old), () => {})
    return { providers: config['providers'] as Record<string, Record<string, unknown>>, notes }
  }

  it("'s second uploader is a mirror of every other destination, and none of itself", async () => {
    const { providers, notes } = await imported(file({ settings: { enableSecondUploader: true } }))
    expect(providers['github']?.['blog']).toMatchObject({ mirrors: ['github/backup'] })
    expect(providers['smms']?.['Host']).toMatchObject({ mirrors: ['github/backup'] })
    expect(providers['github']?.['backup']).not.toHaveProperty('mirrors')
    expect(notes.join()).not.toContain('econdUploader')
  })

  it("'s second uploader is nothing while it is switched off", async () => {
    const { providers } = await imported(file({ settings: { enableSecondUploader: false } }))
    expect(JSON.stringify(providers)).not.toContain('mirrors')
  })

  it("'s second uploader may stand in no list", async () => {
    const settings = { enableSecondUploader: true }
    const { providers } = await imported(file({ settings }, github('elsewhere')))
    expect(providers['github']?.['elsewhere']).not.toHaveProperty('mirrors')
    expect(providers['github']?.['backup']).toMatchObject({ mirrors: ['github/elsewhere'] })
  })

  it.each([
    ['telegraphplist', { _id: 'x' }, 'nothing of "telegraphplist" can be used here'],
    ['github', {}, 'nothing of "github" can be used here'],
    [undefined, {}, 'no second uploader is chosen'],
  ])("'s second uploader %s %j is said to be left out", async (secondUploader, secondUploaderConfig, why) => {
    const settings = { enableSecondUploader: true }
    const old = file({ settings })
    Object.assign(old.picBed, { secondUploader, secondUploaderConfig })
    const { providers, notes } = await imported(old)
    expect(notes).toContain(`"settings.enableSecondUploader" was ignored: ${why}.`)
    expect(JSON.stringify(providers)).not.toContain('mirrors')
  })

  it('copies go nowhere where the second uploader can not be used, and the server starts', async () => {
    const cwd = await makeDirectory()
    const settings = { enableSecondUploader: true }
    const old = file({ settings }, github('elsewhere', { repo: 'no repository' }))
    await writeFile(join(cwd, 'data.json'), JSON.stringify(old))
    const config = await loadConfig({ env: { HOME: cwd }, platform: 'linux', cwd, file: 'data.json' })
    expect(config.destinations.map(({ name, common }) => [name, common.mirrors])).toEqual([
      ['blog', []],
      ['backup', []],
      ['Host', []],
    ])
    expect(config.notes.join()).toContain('"picBed.secondUploaderConfig" was skipped, because')
  })

  it("'s autoRename names files for hosts, too, and can be switched off for one configuration", async () => {
    const buildIn = { list: [{ id: 'backup', autoRename: false }] }
    const { providers, notes } = await imported(file({ settings: { autoRename: true }, buildIn }))
    const timestamp = '{Y}{m}{d}{h}{i}{s}{ms}{extname}'
    expect(providers['github']?.['blog']).toMatchObject({ keyTemplate: `blog/${timestamp}` })
    expect(providers['smms']?.['Host']).toMatchObject({ keyTemplate: timestamp })
    expect(providers['github']?.['backup']).toMatchObject({
      keyTemplate: 'backup/{filename}-{sha256-8}{extname}',
    })
    expect(notes.join()).not.toContain('renaming')
    expect(notes.filter(note => note.includes(' get names such as '))).toEqual([
      expect.stringContaining('Files at github/backup get names'),
    ])
  })

  it('names with a hash are told of once, and only where there are some', async () => {
    const told = async (old: Record<string, unknown>) =>
      (await imported(old)).notes.filter(note => note.includes(' get names such as '))
    expect(await told(file({}))).toEqual([
      expect.stringContaining('Files at github/blog, github/backup get names'),
    ])
    expect(await told(file({ settings: { autoRename: true } }))).toEqual([])
    const [blog, backup] = [github('blog'), github('backup', { repo: 'no repository' })]
    expect(
      await told(file({ uploader: { github: { configList: [blog, backup], defaultId: 'blog' } } })),
    ).toEqual([expect.stringContaining('Files at github/blog get names')])
  })

  it('does with pictures what one configuration alone says', async () => {
    const watermark = { isAddWatermark: true, watermarkText: 'mine' }
    const { providers } = await imported(file({ buildIn: { list: [{ id: 's', watermark }] } }))
    expect(providers['smms']?.['Host']).toMatchObject({ images: { watermark: { text: 'mine' } } })
  })

  it.each([
    ['web-uploader', { url: 'https://img.example/100%/up?token=5%off', paramName: 'file' }, '5%off'],
    ['advancedplist', { endpoint: 'https://img.example/100%/up?key=5%off', method: 'POST' }, '5%off'],
  ])('a percent sign in a URL of %s does not end the start', async (type, options, secret) => {
    const { providers } = await imported({ picBed: { uploader: type, [type]: options } })
    expect(JSON.stringify(providers)).toContain(secret)
  })
})
