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
    base: '/',
    dataDirectory: '/nowhere',
    files: [],
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
    'providers.webdavplist.nas.url is deprecated: write "address" instead. Version 3.0 takes it away',
    'server.watch is deprecated: write "server.reload" instead. Version 2.0 takes it away',
    'auth.keys[1].sources is deprecated: name them in "auth.rules" instead. Version 2.0 takes it away',
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
              /^Deprecated: write "server\.reload" instead\..*\. Take a changed/,
            ),
          },
          port: expect.not.objectContaining({ deprecated: true }),
        },
      },
    },
  })
})
