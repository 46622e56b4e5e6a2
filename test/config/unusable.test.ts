import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { canonicalType } from '../../src/providers/registry.ts'
import { openDestinations } from '../../src/uploader/open.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post, upload } from '../helpers/form.ts'
import { load as loadConfig } from '../helpers/load-config.ts'
import { type Options, UPLOADERS } from '../helpers/picgo-uploaders.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

/** What people leave behind: half filled in, emptied, of another version, edited by hand. */
const WRONG = [undefined, '', '   ', null, 0, true, {}, [], ['x'], '..', '::', 'a b\n', 'x'.repeat(5000)]

/** Shapes that stopped the server. */
const FOUND: [string, Options][] = [
  ['qiniu', { ...UPLOADERS['qiniu'], area: '' }],
  ['upyun', { ...UPLOADERS['upyun'], url: '' }],
  ['smms', { token: '', backupDomain: 'x.example.com' }],
  ['github', { ...UPLOADERS['github'], token: '' }],
  ['aliyun', { accessKeyId: 'a', bucket: 'pics' }],
  ['aws-s3-plist', { ...UPLOADERS['aws-s3-plist'], secretAccessKey: '' }],
  ['lskyplist', { version: 'V2', token: 's' }],
  ['imgur', { username: 'me' }],
]

const GOOD = { _id: 'good', _configName: 'Good', repo: 'someone/pics', branch: 'main', token: 't' }

/** A file in which GitHub is in use, and another uploader has one saved configuration that is the given one. */
function fileWith(type: string, options: Options, more: object = {}) {
  const saved = { ...options, _id: 'id', _configName: 'Mine' }
  const configList = type === 'github' ? [GOOD, saved] : [saved]
  const uploader: Record<string, { configList: object[]; defaultId: string }> = {
    [type]: { configList, defaultId: 'id' },
    github: { configList: type === 'github' ? configList : [GOOD], defaultId: 'good' },
  }
  return { picBed: { uploader: 'github', current: 'github', ...more }, uploader }
}

async function load(file: object, env: Record<string, string> = {}) {
  const config = await loadConfig(file, { env })
  const opened = await openDestinations(config.destinations, config.settings.keyTemplate, () => {})
  await Promise.all(opened.map(one => one.target.close?.()))
  return config
}

const pathOf = (type: string) => `uploader.${type}.configList[${type === 'github' ? 1 : 0}]`

describe('a saved configuration of PicGo or PicList that can not be used', () => {
  it.each(FOUND)('stops the server only while it is in use: %s %j', async (type, options) => {
    const file = fileWith(type, options)
    const config = await load(file)
    expect(config.settings.default).toBe('github/Good')
    expect(config.destinations.map(one => one.name)).toEqual(['Good'])
    expect(config.leftOut).toMatchObject([{ type: canonicalType(type), name: 'Mine' }])
    const notes = config.notes.filter(note => note.startsWith(`"${pathOf(type)}" was skipped, because `))
    expect(notes).toHaveLength(1)
    expect(config.notes.join()).not.toContain(`providers.${canonicalType(type)}.Mine`)
    file.picBed.uploader = type
    file.uploader[type]!.defaultId = 'id'
    await expect(load(file)).rejects.toThrow(`\n  providers.${canonicalType(type)}.Mine`)
  })

  it.each(Object.entries(UPLOADERS))('is left out whatever is wrong with it: %s', async (type, options) => {
    let left = 0
    for (const option of Object.keys(options)) {
      const saved = WRONG.map((value, index) => ({
        ...options,
        [option]: value,
        _configName: `Mine-${index}`,
      }))
      const file = fileWith(type, {})
      file.uploader[type] = { configList: type === 'github' ? [GOOD, ...saved] : saved, defaultId: 'good' }
      const config = await load(file).catch(error => expect.fail(`${option}: ${error}`))
      expect(config.settings.default).toBe('github/Good')
      for (const [index, { _configName }] of saved.entries()) {
        // It is there, or a note says where it stood.
        if (config.destinations.some(one => one.name === _configName)) continue
        left++
        const place = `"uploader.${type}.configList[${type === 'github' ? index + 1 : index}]`
        expect(config.notes.join('\n'), option).toContain(place)
      }
    }
    if (!['piclist'].includes(type)) expect(left).toBeGreaterThan(0)
  })

  it('can be completed by the environment if it is in use', async () => {
    const file = { picBed: { uploader: 'smms', smms: { backupDomain: 'x.example.com' } } }
    const { destinations } = await load(file, { UPLOAD_SERVER__PROVIDERS__SMMS__DEFAULT__TOKEN: 't' })
    expect(destinations).toMatchObject([{ type: 'smms', name: 'Default', options: { token: 't' } }])
  })

  it('is unknown to requests, and nothing else takes its place', async () => {
    const directory = await makeDirectory()
    const local = { path: join(directory, 'pics'), customUrl: 'https://l.example.com', _id: '1' }
    const other = { ...UPLOADERS['piclist'], _configName: 'Other', _id: '2' }
    const broken = { picbed: 'x', port: 'none', host: 'a b', _configName: 'Default', _id: '3' }
    const uploader = {
      local: { configList: [local], defaultId: '1' },
      piclist: { configList: [other, broken], defaultId: '3' },
    }
    await writeFile(join(directory, 'data.json'), JSON.stringify({ picBed: { uploader: 'local' }, uploader }))
    const server = await spawnServer(['--config', 'data.json', '--port', '0'], { directory })
    const url = await server.url
    for (const query of ['picbed=piclist&configName=Default', 'picbed=piclist']) {
      const answer = await post(`${url}/upload?${query}`, { body: formOf({ 'a.txt': 'x' }) })
      expect(answer).toMatchObject({ status: 400, code: 'unknown_destination' })
      expect(answer.message).toMatch(
        /^piclist\/Default was skipped because .*"url".* Available: "local\/Default", "piclist\/Other"\.$/,
      )
    }
    // In PicList's folder itself, not in one by date.
    const { result } = await upload(`${url}/upload`, { 'a.txt': 'x' })
    expect(result[0]).toMatch(/^https:\/\/l\.example\.com\/a-[0-9a-f]{8}\.txt$/)
  })
})

it('a file of PicGo or PicList with every uploader is read and opened as it is', async () => {
  const lists = Object.entries(UPLOADERS).map(([type, options]) => [
    type,
    { configList: [{ _id: type, _configName: 'Mine', ...options }], defaultId: type },
  ])
  const config = await load({ picBed: { uploader: 'aliyun' }, uploader: Object.fromEntries(lists) })
  expect(config.settings.default).toBe('aliyun/Mine')
  expect(config.destinations).toHaveLength(lists.length)
})
