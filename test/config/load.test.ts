import { mkdir, readFile, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError, showConfig } from '../../src/config/load.ts'
import { createMask } from '../../src/mask.ts'
import { chooseDestination, idOf } from '../../src/uploader/destinations.ts'
import { type LoadWith, load, makeMachine, problemsOf } from '../helpers/load-config.ts'

const LOCAL = { directory: 'pictures', serve: true }
const PROVIDERS = { local: { Default: LOCAL } }
const portOf = (port: number) => ({ server: { port } })

describe('the file is looked for', () => {
  it('as --config, UPLOAD_SERVER_CONFIG and in the configuration directory, in this order, not in the working directory', async () => {
    const { load, write, cwd } = await makeMachine()
    const env = { UPLOAD_SERVER_CONFIG: 'env/by-env.json' }
    await write('upload-server.json', portOf(4))
    await write('.env', 'UPLOAD_SERVER_PORT=5')
    const inUse = async (options?: LoadWith) => {
      const { file, settings } = await load(options)
      return [file, settings.server.port]
    }
    expect(await inUse()).toEqual([undefined, 36677])
    const user = await write('../config/upload-server/config.json', portOf(3))
    expect(await inUse()).toEqual([user, 3])
    const byEnv = await write('env/by-env.json', portOf(2))
    expect(await inUse({ env })).toEqual([byEnv, 2])
    const byFlag = await write('sub/by-flag.json', portOf(1))
    expect(await inUse({ env, file: 'sub/by-flag.json' })).toEqual([byFlag, 1])
    expect(await inUse({ env: { UPLOAD_SERVER_CONFIG: byFlag } })).toEqual([byFlag, 1])
    expect(await inUse({ env: { UPLOAD_SERVER_CONFIG: '' } })).toEqual([user, 3])
    expect(byFlag.startsWith(cwd)).toBe(true)
  })

  it.each([{ file: 'absent.json' }, { env: { UPLOAD_SERVER_CONFIG: 'absent.json' } }])(
    'nowhere else when it was named and is not there: %j',
    async options => {
      const machine = await makeMachine()
      await machine.write('upload-server.json', portOf(3))
      await expect(machine.load(options)).rejects.toThrow(
        new ConfigError(undefined, [
          { path: '', message: `Could not read ${join(machine.cwd, 'absent.json')}: no such file or folder` },
        ]),
      )
    },
  )

  it('in the home directory when it is named with a tilde', async () => {
    const { load } = await makeMachine()
    await expect(load({ file: '~/no-such-folder-here/x.json' })).rejects.toThrow(
      `Could not read ${join(homedir(), 'no-such-folder-here/x.json')}`,
    )
  })

  it('and is an error when a folder is in its place', async () => {
    const { load, cwd } = await makeMachine()
    for (const file of ['named.json', '../config/upload-server/config.json']) {
      await mkdir(join(cwd, file), { recursive: true })
      const message = `Could not read ${join(cwd, file)}: it is a directory`
      const expected = new ConfigError(undefined, [{ path: '', message }])
      await expect(load(file === 'named.json' ? { file } : {})).rejects.toThrow(expected)
    }
  })
})

it('prefers flag, environment, .env, file and default, in this order', async () => {
  const { load, write } = await makeMachine()
  const portIn = async (options: LoadWith = {}) =>
    (await load({ file: 'sub/config.json', ...options })).settings.server.port
  await write('sub/config.json', {})
  expect(await portIn()).toBe(36677)
  await write('sub/config.json', portOf(5))
  expect(await portIn()).toBe(5)
  await write('sub/.env', 'UPLOAD_SERVER_PORT=4')
  expect(await portIn()).toBe(4)
  await write('.env', 'UPLOAD_SERVER_PORT=3')
  expect(await portIn(), 'elsewhere').toBe(4)
  const env = { UPLOAD_SERVER_PORT: '2' }
  expect(await portIn({ env })).toBe(2)
  expect(await portIn({ env, flags: { server: { port: 1 } } })).toBe(1)
  expect(await portIn({ env, flags: { server: { port: undefined } } })).toBe(2)
})

describe('the file may', () => {
  it.each<[string, string | Buffer]>([
    ['begin with a byte order mark', '\ufeff{"server":{"port":1}}'],
    ['be written on Windows', '{\r\n  "server": { "port": 1 }\r\n}\r\n'],
    ['hold comments', '// one\n{ /* two */ "server": { "port": 1 } // three\n}\n// four'],
    ['hold trailing commas', '{ "server": { "port": 1, }, "auth": { "keys": [], }, }'],
    ['hold all of it', '\ufeff// x\r\n{"server":{"port":1,},}'],
    ['name its schema for editors', '{"$schema":"./config.schema.json","server":{"port":1}}'],
    ['hold quotes, slashes and braces in text', '{"server":{"port":1,"key":"a\\"b//c/*d*/{e}\\\\"}}'],
    ['be UTF-16, as PowerShell writes it', Buffer.from('\ufeff{"server":{"port":1}}', 'utf16le')],
  ])('%s', async (_, text) => {
    expect((await load(text)).settings.server.port).toBe(1)
  })
})

it.each([
  [{ server: { host: 'server1.local', allowedHosts: ['IMG.example.com', '[fd00::1]:8443', 'nas', 'a_b'] } }],
  [{ server: { host: 'fe80::1%eth0' } }],
  [{ server: { host: '/run/upload-server/http.sock' } }],
  [{ auth: { allowedOrigins: ['https://Notes.example.com/', 'http://nas:8080', 'app://obsidian.md'] } }],
  [{ auth: { reverseProxy: { from: ['10.0.0.2'], userHeader: 'X-Forwarded-User' } } }],
])('hosts, origins and headers that can be are accepted: %j', async config => {
  expect(await problemsOf(config)).toEqual([])
})

it.each(['local', 'local/blog', 'local/Default'])('the default %j can be chosen among several', async id => {
  const providers = { local: { Default: LOCAL, blog: LOCAL } }
  expect((await load({ default: id, providers })).settings.default).toBe(id)
})

it('a setting may name a destination by the alias of its provider', async () => {
  const s3 = { region: 'r', bucket: 'b', accessKeyId: 'i', secretAccessKey: 's', linkType: 'presigned' }
  const keys = [{ name: 'k', key: 'k', destinations: ['aws-s3', 'aws-s3-plist/blog'] }]
  const config = { default: 'aws-s3/blog', auth: { keys }, providers: { s3: { blog: s3 }, ...PROVIDERS } }
  const { destinations, settings } = await load(config)
  expect(idOf(chooseDestination({ destinations, defaultId: settings.default }))).toBe('s3/blog')
})

it('destinations are not said to be available when their provider is unknown', async () => {
  const providers = { ...PROVIDERS, nope: { a: {} } }
  const keys = [{ name: 'ci', key: 'secret', destinations: ['s3', 'nope/a', 'local', 'local/Default'] }]
  const [unknown, ...others] = await problemsOf({ providers, auth: { keys }, default: 's3/y' })
  expect(unknown).toMatch(/^providers\.nope: is not a provider\. Available: /)
  expect(others).toEqual([
    'default: "s3/y" is not a destination. Available: "local/Default"',
    'auth.keys[0].destinations[0]: "s3" is not a destination. Available: "local/Default"',
  ])
  expect(others.join()).not.toContain('nope')
  expect(await problemsOf({ providers, default: 'nope/a' })).toEqual([unknown])
  expect(await problemsOf({ providers: { nope: { a: {} } } })).toEqual([unknown])
})

it('attack: a key called "server" gets the answers of server.key', async () => {
  expect(
    await problemsOf({ auth: { keys: [{ name: 'server', key: 'k' }] }, server: { key: 'k3y' } }),
  ).toEqual([
    expect.stringMatching(/^auth\.keys\[0\]\.name: is reserved for other clients: must not be "server"/),
  ])
})

describe('paths', () => {
  it('start at the directory of the file, or at home', async () => {
    const { load, write, cwd } = await makeMachine()
    await write('sub/config.json', {
      sources: { path: { roots: ['in', '~/in', '/in', '../up'] } },
      database: { path: 'db/store.db' },
      providers: PROVIDERS,
    })
    const { settings, destinations } = await load({ file: 'sub/config.json' })
    const roots = [join(cwd, 'sub/in'), join(homedir(), 'in'), '/in', join(cwd, 'up')]
    expect(settings.sources.path.roots).toEqual(roots)
    expect(settings.database.path).toBe(join(cwd, 'sub/db/store.db'))
    expect(destinations[0]?.options['directory']).toBe(join(cwd, 'sub/pictures'))
  })

  it('start at the working directory when there is no file', async () => {
    const { load, cwd } = await makeMachine()
    const { settings } = await load({ env: { UPLOAD_SERVER__SOURCES__PATH__ROOTS: 'in' } })
    expect(settings.sources.path.roots).toEqual([join(cwd, 'in')])
  })
})

it('variables come from the environment, from .env and from files, and are filled in once', async () => {
  const { load, write } = await makeMachine()
  await write('sub/config.json', {
    server: { key: '${KEY_A}-${KEY_B}-${KEY_C}' },
    auth: { keys: [{ name: 'n', key: '${file:secret}' }] },
    providers: { local: { Default: { directory: '${DIR}/x', urlPrefix: 'https://img.example/$${x}' } } },
  })
  await write('sub/secret', 'from a file\n')
  await write('.env', 'KEY_B=elsewhere')
  await write('sub/.env', 'KEY_A=a1\nKEY_B=b1\nDIR=/srv')
  const env = { KEY_A: 'a0', KEY_C: '${KEY_B}' }
  const { destinations, secrets } = await load({ file: 'sub/config.json', env })
  const options = { directory: '/srv/x', urlPrefix: 'https://img.example/${x}' }
  expect(destinations[0]?.options).toMatchObject(options)
  expect(secrets).toEqual(['a0-b1-${KEY_B}', 'from a file'])
})

it.each<[string, unknown]>([
  ['without a file', undefined],
  ['with an empty file', {}],
  ['with no providers', { providers: {}, server: { port: 1 }, default: 'local' }],
])('%s files go to the data directory and are served', async (_, content) => {
  const { load, write, cwd } = await makeMachine()
  const named = content === undefined ? undefined : await write('upload-server.json', content)
  const { destinations, dataDirectory, notes, file } = await load({ file: named })
  expect(file).toBe(named)
  expect(dataDirectory).toBe(join(cwd, '../data/upload-server'))
  const directory = join(dataDirectory, 'files')
  expect(destinations).toMatchObject([
    { type: 'local', name: 'Default', options: { directory, serve: true } },
  ])
  expect(notes).toEqual([
    `No destination is configured. Files are stored in ${directory} and served under /files/.`,
  ])
})

it('flags fill sections that the file does not have, and do not hide that one is no object', async () => {
  const server = { key: '0123', port: undefined }
  const flags = { server, auth: { anonymous: true }, log: { level: undefined } }
  const { settings } = await load({ server: { host: '::1' } }, { flags })
  expect(settings).toMatchObject({
    server: { key: '0123', host: '::1', port: 36677 },
    auth: { anonymous: true },
    log: { level: 'info' },
  })
  expect(await problemsOf({ server: 'x' }, { flags })).toEqual(['server: must be an object, not a string'])
})

it('a PicGo or PicList file is used as it is, and may be changed by the environment and by flags', async () => {
  const local = { path: '/srv/pictures', customUrl: 'https://img.example', webPath: '' }
  const file = {
    picBed: { uploader: 'local', current: 'local', local, gitee: { token: 'hunter2' } },
    settings: { server: { port: 1234, host: '127.0.0.1' }, serverKey: 'a ${key}' },
  }
  const { settings, destinations, notes } = await load(file)
  const options = { directory: '/srv/pictures', urlPrefix: 'https://img.example' }
  expect(destinations).toMatchObject([{ type: 'local', name: 'Default', options }])
  expect(settings).toMatchObject({ default: 'local/Default', server: { port: 1234, key: 'a ${key}' } })
  expect(notes).toEqual([
    expect.stringMatching(/^"picBed\.gitee" was skipped: Gitee blocks/),
    expect.stringMatching(/^Files at local\/Default get names such as /),
  ])
  const env = { UPLOAD_SERVER_KEY: 'k', UPLOAD_SERVER__PROVIDERS__LOCAL__DEFAULT__ONCONFLICT: 'rename' }
  const changed = await load(file, { env, flags: { server: { port: 9 } } })
  expect(changed.settings.server).toMatchObject({ key: 'k', port: 9 })
  expect(changed.destinations[0]?.common.onConflict).toBe('rename')
})

describe('ownPaths', () => {
  it('hold the configuration and its .env, also before they exist, every file that was read into it, the store and host keys', async () => {
    const { load, write, cwd } = await makeMachine()
    const config = await write('sub/config.json', { server: { key: '${file:secret}' }, providers: PROVIDERS })
    const secret = await write('sub/secret', 'x')
    const beside = join(cwd, 'sub/.env')
    expect((await load({ file: 'sub/config.json' })).ownPaths.toSorted()).toEqual(
      [
        ...[config, secret, beside],
        ...['store.db', 'known_hosts'].map(name => join(cwd, '../data/upload-server', name)),
      ].sort(),
    )
    await write('sub/config.json', { database: { path: 'other.db' }, providers: PROVIDERS })
    expect((await load({ file: 'sub/config.json' })).ownPaths).toContain(join(cwd, 'sub/other.db'))
    const user = join(cwd, '../config/upload-server')
    expect((await load()).ownPaths).toEqual(
      expect.arrayContaining([join(user, 'config.json'), join(user, '.env')]),
    )
  })

  it('hold a configuration that is a link, as Kubernetes mounts it', async () => {
    const { load, write, cwd } = await makeMachine()
    const real = await write('real.json', { providers: PROVIDERS })
    await symlink(real, join(cwd, 'upload-server.json'))
    const { ownPaths, destinations } = await load({ file: 'upload-server.json' })
    expect(ownPaths).toContain(join(cwd, 'upload-server.json'))
    expect(destinations[0]?.options['directory']).toBe(join(cwd, 'pictures'))
  })
})

describe('showConfig', () => {
  it('shows everything with its defaults, as a file that can be used', async () => {
    const loaded = await load({ server: { port: 1 }, providers: PROVIDERS })
    const shown = showConfig(loaded, text => text) as Record<string, unknown>
    expect(shown).toMatchObject({
      default: 'local/Default',
      server: { port: 1, host: '127.0.0.1' },
      limits: { fileSize: '100MB' },
      providers: { local: { Default: { serve: true, durable: true } } },
    })
    const again = await load(shown)
    expect(showConfig(again, text => text)).toEqual(shown)
  })

  it('masks secrets of any length and keeps the names of options that are equal to one', async () => {
    const loaded = await load({
      server: { key: 'ab' },
      auth: {
        keys: [
          { name: 'one', key: 'server' },
          { name: 'with level', key: 'level' },
          { name: 'two', key: 'secret' },
        ],
      },
      database: { driver: 'postgres', url: 'postgres://u:p@h/db' },
      finalization: { hooks: [{ name: 'h', webhook: 'https://x.example', secret: 'hunter2' }] },
    })
    const shown = showConfig(loaded, createMask(loaded.secrets))
    expect(shown).toMatchObject({
      server: { key: '[secret]', port: 36677 },
      auth: {
        keys: [
          { name: 'one', key: '[secret]' },
          { name: 'with [secret]', key: '[secret]' },
          { name: 'two', key: '[secret]' },
        ],
      },
      database: { url: '[secret]' },
      finalization: { hooks: [{ secret: '[secret]' }] },
      log: { level: 'info' },
    })
    expect(JSON.stringify(shown)).not.toMatch(/hunter2|postgres:|"ab"/)
  })
})

it('the example of the repository can be used as it is', async () => {
  const example = await readFile(new URL('../../upload-server.example.json', import.meta.url), 'utf8')
  const { load, write } = await makeMachine()
  await write('upload-server.json', example)
  const names = [...example.matchAll(/\$\{(\w+)\}/g)].map(match => match[1] as string)
  const env = Object.fromEntries(names.map(name => [name, name]))
  expect((await load({ env, file: 'upload-server.json' })).notes).toEqual([])
  expect(JSON.parse(example)).toHaveProperty('$schema', './config.schema.json')
})
