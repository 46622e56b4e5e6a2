import { expect, it } from 'vitest'
import { describeConfig } from '../src/cli/config.ts'
import { checkConfig } from '../src/config/load.ts'
import type { RawConfig } from '../src/config/raw.ts'
import { configSchema } from '../src/config/schema.ts'
import { deprecated } from '../src/options.ts'
import { loadProvider } from '../src/providers/registry.ts'

// Marked for the process of this file alone, as src would mark them.
const { server, auth } = configSchema.shape
deprecated(server.unwrap().shape.watch, 'write "server.reload"', '2.0')
deprecated(auth.unwrap().shape.keys.unwrap().element.shape.sources, 'name them in "auth.rules"', '2.0')
const webdav = await loadProvider('webdav')
deprecated(webdav!.config.shape['url']!, 'write "address"', '3.0')

async function notesOf(value: object): Promise<readonly string[]> {
  const providers = {
    webdavplist: { nas: { url: 'https://nas.example.com', username: 'me', password: 'pa55word' } },
  }
  const raw: RawConfig = {
    value: { providers, ...value },
    file: undefined,
    origin: undefined,
    codeBase: '/',
    base: '/',
    dataDirectory: '/nowhere',
    files: [],
    nearby: [],
    notes: [],
    leftOut: [],
    secrets: [],
    sources: { text: undefined, given: [] },
  }
  return (await checkConfig(raw)).notes
}

it('a deprecated option that is used is told of at the start, wherever it stands', async () => {
  const keys = [
    { name: 'a', key: 'of-the-first' },
    { name: 'b', key: 'of-the-second', sources: ['url'] },
  ]
  expect(await notesOf({ server: { watch: false }, auth: { keys } })).toEqual([
    'providers.webdavplist.nas.url is deprecated: write "address" instead. Version 3.0 removes it',
    'server.watch is deprecated: write "server.reload" instead. Version 2.0 removes it',
    'auth.keys[1].sources is deprecated: name them in "auth.rules" instead. Version 2.0 removes it',
  ])
})

it('one that has its default is not', async () => {
  const providers = { local: { a: { directory: '/srv/files', serve: true } } }
  expect(await notesOf({ providers, server: { port: 8080 } })).toEqual([])
})

it('editors strike it through, and its page says so', async () => {
  expect(await describeConfig()).toMatchObject({
    properties: {
      server: {
        properties: {
          watch: {
            deprecated: true,
            default: true,
            description: expect.stringMatching(
              /^Deprecated: write "server\.reload" instead\..*\. Reload the configuration/,
            ),
          },
          port: expect.not.objectContaining({ deprecated: true }),
        },
      },
    },
  })
})

type Row = [type: string, base: object, now: object, before: object, different: object]

const WITHOUT_EXPIRY: readonly Row[] = [
  [
    's3',
    { region: 'eu-central-1', bucket: 'b' },
    { linkType: 'presigned', presignedFor: '12h' },
    { url: 'presigned', presignedForS: 43_200 },
    { url: 'public', presignedForS: 1 },
  ],
  [
    'aliyun',
    { region: 'oss-cn-hangzhou', bucket: 'b', accessKeyId: 'a', secretAccessKey: 's' },
    { linkType: 'presigned', presignedFor: '12h' },
    { url: 'presigned', presignedForS: 43_200 },
    { url: 'public', presignedForS: 1 },
  ],
  [
    'azure',
    { account: 'pictures1', container: 'drafts', accountKey: 'a'.repeat(86) },
    { linkType: 'sas', sasFor: '1d' },
    { url: 'sas', sasForS: 86_400 },
    { url: 'public', sasForS: 60 },
  ],
  [
    'upyun',
    { bucket: 'b', operator: 'o', password: 'pa55word', urlPrefix: 'https://img.example.com' },
    { antiLeechToken: 'leech', antiLeechFor: '1h' },
    { antiLeechForS: 3600 },
    { antiLeechForS: 60 },
  ],
  ['local', { directory: '/srv/files', serve: true }, {}, {}, {}],
]

const RENAMED = WITHOUT_EXPIRY.map(([type, base, now, before, different]): Row => {
  const max = { expiry: { max: '30d' } }
  const most = { expiry: { most: '30d' } }
  const both = { expiry: { max: '30d', most: '31d' } }
  return [type, base, { ...now, ...max }, { ...before, ...most }, { ...different, ...both }]
})

it.each(RENAMED)('the earlier names of options of %s are accepted, and told of', async (...row) => {
  const [type, base, now, before] = row
  const read = (own: object) => notesOf({ providers: { [type]: { a: { ...base, ...own } } } })
  expect(await read(now)).toEqual([])
  const notes = (await read(before)).toSorted()
  const names = Object.keys(before).map(name => (name === 'expiry' ? 'expiry.most' : name))
  expect(
    notes.map(note => note.replace(/ is deprecated: write .* instead\. Version 1\.0 removes it$/, '')),
  ).toEqual(names.map(name => `providers.${type}.a.${name}`).sort())
  // Both names with one value are fine.
  const both = { ...now, ...before, expiry: { max: '30d', most: '30d' } }
  expect((await read(both)).toSorted()).toEqual(notes.toSorted())
})

it.each(RENAMED)('both names of an option of %s with different values are an error', async (...row) => {
  const [type, base, now, , different] = row
  for (const [name, value] of Object.entries(different)) {
    const config = { providers: { [type]: { a: { ...base, ...now, [name]: value } } } }
    await expect(notesOf(config)).rejects.toThrow(
      /differ: remove "(url|presignedForS|sasForS|antiLeechForS|most)"/,
    )
  }
})
