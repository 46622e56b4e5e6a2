import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError, type Flags, type LoadedConfig, loadConfig, showConfig } from '../../src/config/load.ts'
import { createMask } from '../../src/mask.ts'
import { PROVIDER_TYPES } from '../../src/providers/registry.ts'
import { chooseDestination, idOf } from '../../src/uploader/destinations.ts'
import { makeDirectory } from '../helpers/directory.ts'

interface Machine {
  cwd: string
  /** Writes a file below the working directory and gives its path. */
  write(name: string, content: unknown): Promise<string>
  load(options?: {
    file?: string | undefined
    env?: Record<string, string>
    flags?: Flags
  }): Promise<LoadedConfig>
}

/** A working directory without anything, and the user's directories beside it. */
async function makeMachine(): Promise<Machine> {
  const root = await makeDirectory()
  const cwd = join(root, 'cwd')
  await mkdir(cwd)
  return {
    cwd,
    async write(name, content) {
      const path = join(cwd, name)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(
        path,
        typeof content === 'string' || content instanceof Buffer ? content : JSON.stringify(content),
      )
      return path
    },
    load: ({ env, ...options } = {}) =>
      loadConfig({
        env: { XDG_CONFIG_HOME: join(root, 'config'), XDG_DATA_HOME: join(root, 'data'), ...env },
        platform: 'linux',
        cwd,
        ...options,
      }),
  }
}

async function load(content: unknown, options: Parameters<Machine['load']>[0] = {}): Promise<LoadedConfig> {
  const machine = await makeMachine()
  const file = await machine.write('upload-server.json', content)
  return machine.load({ file, ...options })
}

/** The mistakes found, without the first line, which names the file. */
async function problemsOf(
  content: unknown,
  options: Parameters<Machine['load']>[0] = {},
): Promise<readonly string[]> {
  const error: unknown = await load(content, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error === undefined) return []
  if (!(error instanceof ConfigError)) throw error
  const [, ...lines] = error.message.split('\n  ')
  expect(lines).toEqual(
    error.problems.map(problem => expect.toSatisfy((line: string) => line.startsWith(problem))),
  )
  return error.problems
}

const LOCAL = { directory: 'pictures', serve: true }
const PROVIDERS = { local: { Default: LOCAL } }
const portOf = (port: number) => ({ server: { port } })

describe('the file is looked for', () => {
  it('as --config, UPLOAD_SERVER_CONFIG and in the configuration directory, in this order, not in the working directory', async () => {
    const { load, write, cwd } = await makeMachine()
    const env = { UPLOAD_SERVER_CONFIG: 'env/by-env.json' }
    await write('upload-server.json', portOf(4))
    await write('.env', 'UPLOAD_SERVER_PORT=5')
    const inUse = async (options?: Parameters<Machine['load']>[0]) => {
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
  const portIn = async (options: Parameters<Machine['load']>[0] = {}) =>
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
    ['hold quotes, slashes and braces in text', '{"server":{"port":1,"key":"a\\"b//c/*d*/{e}\\\\"}}'],
    ['be UTF-16, as PowerShell writes it', Buffer.from('\ufeff{"server":{"port":1}}', 'utf16le')],
  ])('%s', async (_, text) => {
    expect((await load(text)).settings.server.port).toBe(1)
  })

  it('name its schema for editors', async () => {
    expect(await problemsOf({ $schema: './config.schema.json' })).toEqual([])
  })
})

describe('what is no JSON is reported with line and column', () => {
  it.each([
    ['{\n  "server": {\n    "port" 1\n  }\n}', 'is not valid JSON: colon expected in line 3, column 12'],
    ['{"a": 1 "b": 2}', 'is not valid JSON: comma expected in line 1, column 9'],
    ['{"a": nope}', 'is not valid JSON: invalid symbol in line 1, column 7'],
    ["{'a': 1}", 'is not valid JSON: invalid symbol in line 1, column 2'],
    ['{"a": "x', 'is not valid JSON: unexpected end of string in line 1, column 7'],
    ['{"a": 1', 'is not valid JSON: close brace expected in line 1, column 8'],
    ['', 'is not valid JSON: value expected in line 1, column 1'],
    ['{} {}', 'is not valid JSON: end of file expected in line 1, column 4'],
  ])('%j', async (text, problem) => {
    expect(await problemsOf(text)).toEqual([problem])
  })
})

it.each([
  ['[]', 'must contain an object, not a list'],
  ['[{"server":{}}]', 'must contain an object, not a list'],
  ['"x"', 'must contain an object, not a string'],
  ['null', 'must contain an object, not null'],
  ['7', 'must contain an object, not a number'],
  ['true', 'must contain an object, not a boolean'],
])('a file that holds %s is refused', async (text, problem) => {
  expect(await problemsOf(text)).toEqual([problem])
  expect(await problemsOf(text, { env: { UPLOAD_SERVER_PORT: '1' } })).toEqual([problem])
})

it.each(['caFile', 'insecureTls'])('%s is not an option of what opens no connections', async option => {
  const problems = await problemsOf({
    default: 'local',
    providers: {
      local: { a: { ...LOCAL, [option]: 'x' } },
      command: { a: { command: ['x'], url: 'https://a.example/{key}', [option]: 'x' } },
    },
  })
  expect(problems).toEqual([
    expect.stringContaining(`providers.local.a.${option}: is not an option`),
    expect.stringContaining(`providers.command.a.${option}: is not an option`),
  ])
})

it('the message begins with the path of the file', async () => {
  const { load, write } = await makeMachine()
  const path = await write('upload-server.json', { sever: {} })
  await expect(load({ file: path })).rejects.toThrow(
    `Could not load ${path}:\n  sever: is not an option. Did you mean "server"? (line 1)`,
  )
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

describe('a mistake is reported with its path and what is allowed', () => {
  it.each<[unknown, string]>([
    [{ sever: {} }, 'sever: is not an option. Did you mean "server"?'],
    [{ server: { hots: 'x' } }, 'server.hots: is not an option. Did you mean "host"?'],
    [{ limits: { fileSizes: 1 } }, 'limits.fileSizes: is not an option. Did you mean "fileSize"?'],
    [
      { sources: { url: { allowPrivat: true } } },
      'sources.url.allowPrivat: is not an option. Did you mean "allowPrivate"?',
    ],
    [{ server: null }, 'server: must be an object, not null'],
    [{ server: [] }, 'server: must be an object, not a list'],
    [{ server: { port: '36677' } }, 'server.port: must be a number, not a string'],
    [{ server: { port: -1 } }, 'server.port: must be 0 or more'],
    [{ server: { port: 65536 } }, 'server.port: must be 65535 or less'],
    [{ server: { port: 80.5 } }, 'server.port: must be a whole number'],
    [{ server: { host: '' } }, 'server.host: must not be empty'],
    ...['http://0.0.0.0', '0.0.0.0:8080', '1.2.3.999', '127.1', 'a b', 'run/x.sock', '*'].map(
      (host): [unknown, string] => [
        { server: { host } },
        'server.host: must be an IP address, a hostname or the absolute path of a Unix socket, without http:// and without a port',
      ],
    ),
    ...['https://img.example.com', '*.example.com', '*', '::1', 'a/b', 'bücher.example'].map(
      (host): [unknown, string] => [
        { server: { allowedHosts: [host] } },
        'server.allowedHosts[0]: must be a hostname as the Host header has it, such as "img.example.com" or "img.example.com:8443"',
      ],
    ),
    ...[
      ...['*', 'null', 'notes.example.com', 'https://*.example.com', 'https://a.example/x', 'https://'],
      ...['https://a.example:443', 'https://bücher.example', 'https://me@a.example'],
    ].map((origin): [unknown, string] => [
      { auth: { allowedOrigins: [origin] } },
      'auth.allowedOrigins[0]: must be an origin as browsers send it, such as "https://notes.example.com": without a path, a wildcard or a default port',
    ]),
    ...['Content-Length', 'Cookie', 'x-forwarded-for', 'Accept', 'X-Upload-Key'].map(
      (userHeader): [unknown, string] => [
        { auth: { reverseProxy: { from: ['10.0.0.2'], userHeader } } },
        'auth.reverseProxy.userHeader: must not be a header with a meaning of its own',
      ],
    ),
    [{ server: { key: '' } }, 'server.key: must not be empty'],
    [{ server: { key: 1234 } }, 'server.key: must be a string, not a number'],
    [{ server: { publicUrl: 'img.example.com' } }, 'server.publicUrl: must be an http or https URL'],
    [{ server: { publicUrl: 'ftp://img.example.com' } }, 'server.publicUrl: must be an http or https URL'],
    [{ server: { publicUrl: 'https://a/?b' } }, 'server.publicUrl: must not have a query or a fragment'],
    [{ server: { publicUrl: 'https://a:99999' } }, 'server.publicUrl: must be an http or https URL'],
    [{ server: { publicUrl: 'https://1.2.3.999' } }, 'server.publicUrl: must be an http or https URL'],
    [
      { server: { publicUrl: 'https://me:pa55word@a' } },
      'server.publicUrl: must not contain a user name or a password, because links are public',
    ],
    ...['http://0.0.0.0:36677', 'http://0', 'http://[::]:36677'].map((publicUrl): [unknown, string] => [
      { server: { publicUrl } },
      'server.publicUrl: must have a host that clients can connect to, not 0.0.0.0 or [::], on which a server only listens',
    ]),
    [{ server: { trustProxy: true } }, 'server.trustProxy: must be a list, not a boolean'],
    [
      { server: { trustProxy: ['10.0.0.0/8', 'proxy.example'] } },
      'server.trustProxy[1]: must be an IP address, a CIDR range such as "10.0.0.0/8", "loopback", "linklocal" or "uniquelocal"',
    ],
    [
      { server: { trustProxy: ['loopback', '0.0.0.0/0'] } },
      'server.trustProxy[1]: trusts every address, so any client could forge X-Forwarded-For. Name your proxies only, such as "10.0.0.0/8"',
    ],
    [
      { server: { trustProxy: ['::ffff:10.0.0.0/96'] } },
      'server.trustProxy[0]: trusts every address, so any client could forge X-Forwarded-For. Name your proxies only, such as "10.0.0.0/8"',
    ],
    [{ database: { path: 'a\0b' } }, 'database.path: contains a NUL character'],
    [{ auth: { anonymous: 'yes' } }, 'auth.anonymous: must be a boolean, not a string'],
    [{ auth: { keys: [{ key: 'k' }] } }, 'auth.keys[0].name: is missing. It must be a string'],
    [{ auth: { keys: [{ name: 'n', key: '' }] } }, 'auth.keys[0].key: must not be empty'],
    [
      { auth: { keys: [{ name: 'n', key: 'k', sources: ['forms'] }] } },
      'auth.keys[0].sources[0]: must be one of: "form", "url", "path", "clipboard". Did you mean "form"?',
    ],
    [
      { auth: { keys: [{ name: 'n', key: 'k', destinations: ['/x'] }] } },
      'auth.keys[0].destinations[0]: must be a destination, written "provider" or "provider/configName"',
    ],
    [
      { limits: { fileSize: '10 parsecs' } },
      'limits.fileSize: must be a size above 0, such as "100MB", "512KB" or "2GB"',
    ],
    [{ limits: { files: 0 } }, 'limits.files: must be 1 or more'],
    [
      { limits: { destinationTimeout: '0ms' } },
      'limits.destinationTimeout: must be a time above 0, such as "90s", "12h" or "30d"',
    ],
    [
      { limits: { destinationTimeout: '25d' } },
      'limits.destinationTimeout: must be a time above 0, such as "90s", "12h" or "30d"',
    ],
    [{ limits: { bodyIdle: 30 } }, 'limits.bodyIdle: needs a unit: write "30s" or "30ms"'],
    [{ limits: { fileSize: 100 } }, 'limits.fileSize: needs a unit: write "100MB" or "100B"'],
    [
      { log: { level: 'loud' } },
      'log.level: must be one of: "fatal", "error", "warn", "info", "debug", "trace", "silent"',
    ],
    [{ database: { driver: 'mysql' } }, 'database.driver: must be one of: "sqlite", "postgres"'],
    [
      { finalization: { hooks: [{ name: 'a' }] } },
      'finalization.hooks[0]: needs either "command" or "webhook"',
    ],
    [
      { finalization: { hooks: [{ name: 'a', command: ['x'], webhook: 'https://x' }] } },
      'finalization.hooks[0]: needs either "command" or "webhook"',
    ],
    [
      { finalization: { hooks: [{ name: 'a', command: [] }] } },
      'finalization.hooks[0].command: must not be empty',
    ],
    [
      { keyTemplate: '' },
      'keyTemplate: is empty: an object key needs a file name, for example "{filename}{extname}"',
    ],
    [
      { keyTemplate: '/{filename}' },
      'keyTemplate: starts with "/": object keys are relative to the destination',
    ],
    [{ keyTemplate: '{Y}/{m}/' }, 'keyTemplate: ends with "/": an object key must end with a file name'],
    [{ keyTemplate: 'a/../{filename}' }, 'keyTemplate: has a "." or ".." segment'],
    [{ keyTemplate: 'a\\{filename}' }, 'keyTemplate: contains a backslash or a control character'],
    [{ keyTemplate: '{filename' }, 'keyTemplate: has an unmatched brace near "{filename"'],
    [{ keyTemplate: 7 }, 'keyTemplate: must be a string, not a number'],
    [{ providers: [] }, 'providers: must be an object, not a list'],
    [{ providers: null }, 'providers: must be an object, not null'],
    [{ providers: 'local' }, 'providers: must be an object, not a string'],
    [{ providers: { local: {} } }, 'providers: has no destination. Add one as providers.TYPE.NAME'],
    [{ providers: { local: 'x' } }, 'providers.local: must be an object, not a string'],
    [{ providers: { local: { a: 'x' } } }, 'providers.local.a: must be an object, not a string'],
    [
      { providers: { local: { '..': LOCAL } } },
      'providers.local[".."]: is not a valid name: it must be text other than "." and ".."',
    ],
    [
      { providers: { local: { ' ': LOCAL } } },
      'providers.local[" "]: is not a valid name: it must be text other than "." and ".."',
    ],
    [{ providers: { locl: { a: {} } } }, 'providers.locl: is not a provider. Did you mean "local"?'],
    [
      { providers: { local: { Default: { directry: 'x', directory: 'x', serve: true } } } },
      'providers.local.Default.directry: is not an option. Did you mean "directory"?',
    ],
    [
      { providers: { local: { a: { serve: true } } } },
      'providers.local.a.directory: is missing. It must be a string',
    ],
    [
      { providers: { local: { a: { directory: 7, serve: true } } } },
      'providers.local.a.directory: must be a string, not a number',
    ],
    [
      { providers: { local: { a: { directory: 'x' } } } },
      'providers.local.a: Set "serve" to true, or set "urlPrefix". Otherwise stored files have no URL.',
    ],
    [
      { providers: { local: { a: { ...LOCAL, onConflict: 'ask' } } } },
      'providers.local.a.onConflict: must be one of: "replace", "rename", "error"',
    ],
    [
      { providers: { local: { a: { ...LOCAL, urlPrefix: '/files' } } } },
      'providers.local.a.urlPrefix: must be an http or https URL',
    ],
    [
      { providers: { local: { a: { ...LOCAL, keyTemplate: '{x}/' } } } },
      'providers.local.a.keyTemplate: ends with "/": an object key must end with a file name',
    ],
  ])('%j', async (config, problem) => {
    expect(await problemsOf(config)).toEqual([problem])
  })

  it.each([
    { keyTemplate: '{nope}' },
    { providers: { local: { Default: { ...LOCAL, keyTemplate: 'a{nope}' } } } },
  ])('an unknown placeholder with all there are: %j', async config => {
    const [problem, ...others] = await problemsOf(config)
    expect(others).toEqual([])
    expect(problem).toMatch(
      /keyTemplate: has the unknown placeholder \{nope\}; available: \{Y\} .*\{localFolder:N\}$/,
    )
  })
})

describe('names that stand twice in one object', () => {
  it('are found by their meaning, not their spelling', async () => {
    expect(await problemsOf('{"log": {}, "\\u006cog": {}}')).toEqual([
      'log: is set twice, the second time in line 1. Remove one of them',
    ])
  })

  it('are no mistake in different objects', async () => {
    const keys = [
      { name: 'a', key: 'name' },
      { name: 'b', key: '{"key": "key"}' },
    ]
    expect(await problemsOf({ auth: { keys } })).toEqual([])
  })
})

describe('default', () => {
  const several = { local: { Default: LOCAL, blog: LOCAL } }

  it('may be left out when there is one destination only', async () => {
    expect((await load({ providers: PROVIDERS })).settings.default).toBeUndefined()
  })

  it('is needed when there are several', async () => {
    expect(await problemsOf({ providers: several })).toEqual([
      'default: is required, because there are several destinations. Available: "local/Default", "local/blog"',
    ])
  })

  it.each(['local', 'local/blog', 'local/Default'])('may be %s', async value => {
    expect(await problemsOf({ default: value, providers: several })).toEqual([])
  })

  it.each(['local/Blog', 'local/nope', 'nope', 'nope/blog', 'blog', 's3'])(
    '%s names nothing',
    async value => {
      expect(await problemsOf({ default: value, providers: several })).toEqual([
        `default: "${value}" can't be used. The setting "default" does not match a destination. Available: "local/Default", "local/blog".`,
      ])
    },
  )

  it('is not settled by a provider with several configurations', async () => {
    const [problem, ...others] = await problemsOf({
      default: 'local',
      providers: { local: { a: LOCAL, b: LOCAL } },
    })
    expect(others).toEqual([])
    expect(problem).toMatch(/^default: "local" can't be used\. local has several destinations/)
  })

  it.each(['', '/', '/x', 'local/', 'local//x'])('%j is not even written like one', async value => {
    expect(await problemsOf({ default: value, providers: PROVIDERS })).toContain(
      'default: must be a destination, written "provider" or "provider/configName"',
    )
  })
})

describe('aliases of providers', () => {
  const s3 = {
    endpoint: 'https://s3.example',
    bucket: 'b',
    region: 'r',
    accessKeyId: 'id',
    secretAccessKey: 'secret',
    urlPrefix: 'https://img.example',
  }

  it.each(['aws-s3', 'aws-s3-plist'])('%s is s3 wherever it stands', async alias => {
    const { destinations, settings } = await load({
      default: `${alias}/blog`,
      providers: { [alias]: { blog: s3, screens: s3 }, ...PROVIDERS },
      auth: { keys: [{ name: 'k', key: 'k', destinations: [alias, 's3/screens', `${alias}/blog`] }] },
    })
    expect(destinations.map(idOf)).toEqual(['s3/blog', 's3/screens', 'local/Default'])
    expect(idOf(chooseDestination(destinations, settings.default))).toBe('s3/blog')
  })

  it('may stand beside each other with different names', async () => {
    const providers = { s3: { a: s3 }, 'aws-s3': { b: s3 }, 'aws-s3-plist': { c: s3 } }
    const { destinations } = await load({ default: 's3/b', providers })
    expect(destinations.map(idOf)).toEqual(['s3/a', 's3/b', 's3/c'])
  })

  it.each([
    ['aws-s3', 'S3'],
    ['aws-s3', 'AWS-S3'],
    ['s3', 'AWS-S3'],
  ])('in the file, %s is found by the environment as %s', async (type, variable) => {
    const { destinations } = await load(
      { providers: { [type]: { blog: s3 } } },
      { env: { [`UPLOAD_SERVER__PROVIDERS__${variable}__BLOG__BUCKET`]: 'other' } },
    )
    expect(destinations).toMatchObject([{ type: 's3', name: 'blog', options: { bucket: 'other' } }])
  })

  it('may not give one name to two configurations', async () => {
    const providers = { s3: { a: s3 }, 'aws-s3': { a: s3 } }
    expect(await problemsOf({ default: 's3/a', providers })).toEqual([
      'providers.aws-s3.a: is configured twice, under "s3" and under an alias of it. Remove one of them',
    ])
  })

  it('have their secrets masked', async () => {
    const { secrets } = await load({ providers: { 'aws-s3': { a: { ...s3, secretAccessKey: 'hunter2' } } } })
    expect(secrets).toContain('hunter2')
  })
})

describe('destinations of keys', () => {
  const withKeys = (...keys: object[]) => ({
    providers: PROVIDERS,
    auth: { keys: keys.map((key, index) => ({ name: `k${index}`, key: `key${index}`, ...key })) },
  })

  it.each(['local', 'local/Default'])('may be %s', async id => {
    expect(await problemsOf(withKeys({ destinations: [id] }))).toEqual([])
  })

  it('are not said to be available when their provider is unknown', async () => {
    const providers = { ...PROVIDERS, nope: { a: {} } }
    const keys = [{ name: 'ci', key: 'secret', destinations: ['s3', 'nope/a'] }]
    const [unknown, ...others] = await problemsOf({ providers, auth: { keys }, default: 's3/y' })
    expect(unknown).toMatch(/^providers\.nope: is not a provider\. Available: /)
    expect(others).toEqual([
      expect.stringMatching(/^default: "s3\/y" .*"local\/Default"\.$/),
      'auth.keys[0].destinations[0]: "s3" is not a destination. Available: "local/Default"',
    ])
    expect(others.join()).not.toContain('nope')
    expect(await problemsOf({ providers, default: 'nope/a' })).toEqual([unknown])
    expect(await problemsOf({ providers: { nope: { a: {} } } })).toEqual([unknown])
  })

  it('attack: a key called "server" gets the answers of server.key', async () => {
    const config = withKeys({ name: 'ci' }, { name: 'server' })
    expect(await problemsOf({ ...config, server: { key: 'k3y' } })).toEqual([
      expect.stringMatching(/^auth\.keys\[1\]\.name: is reserved for other clients: must not be "server"/),
    ])
  })
})

describe('paths', () => {
  it('start at the directory of the file, or at home', async () => {
    const { load, write, cwd } = await makeMachine()
    await write('sub/config.json', {
      sources: { path: { roots: ['in', '~/in', '/in', '../up'] } },
      database: { path: 'db/store.db' },
      providers: {
        local: { a: { directory: 'pictures', serve: true }, b: { directory: '~/b', serve: true } },
      },
      default: 'local/a',
    })
    const { settings, destinations } = await load({ file: 'sub/config.json' })
    expect(settings.sources.path.roots).toEqual([
      join(cwd, 'sub/in'),
      join(homedir(), 'in'),
      '/in',
      join(cwd, 'up'),
    ])
    expect(settings.database.path).toBe(join(cwd, 'sub/db/store.db'))
    expect(destinations.map(({ options }) => options['directory'])).toEqual([
      join(cwd, 'sub/pictures'),
      join(homedir(), 'b'),
    ])
  })

  it('start at the working directory when there is no file', async () => {
    const { load, cwd } = await makeMachine()
    const { settings } = await load({ env: { UPLOAD_SERVER__SOURCES__PATH__ROOTS: 'in' } })
    expect(settings.sources.path.roots).toEqual([join(cwd, 'in')])
  })
})

describe('variables', () => {
  it('come from the environment, from .env and from files', async () => {
    const { load, write } = await makeMachine()
    await write('sub/config.json', {
      server: { key: '${KEY_A}-${KEY_B}' },
      auth: { keys: [{ name: 'n', key: '${file:secret}' }] },
      providers: { local: { Default: { directory: '${DIR}/x', urlPrefix: 'https://${HOST_NAME}/$${x}' } } },
    })
    await write('sub/secret', 'from a file\n')
    await write('.env', 'KEY_B=elsewhere')
    await write('sub/.env', 'KEY_A=a1\nKEY_B=b1\nDIR=/srv\nHOST_NAME=img.example')
    const { settings, destinations, secrets } = await load({ file: 'sub/config.json', env: { KEY_A: 'a0' } })
    expect(settings.server.key).toBe('a0-b1')
    expect(settings.auth.keys[0]?.key).toBe('from a file')
    expect(destinations[0]?.options).toMatchObject({
      directory: '/srv/x',
      urlPrefix: 'https://img.example/${x}',
    })
    expect(secrets).toEqual(['a0-b1', 'from a file'])
  })

  it('of the environment are not filled in a second time', async () => {
    const { settings } = await load({ server: { key: '${A}' } }, { env: { A: '${B}' } })
    expect(settings.server.key).toBe('${B}')
  })
})

describe('without a destination', () => {
  it.each<[string, unknown]>([
    ['without a file', undefined],
    ['with an empty file', {}],
    ['with no providers', { providers: {}, server: { port: 1 } }],
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

  it('a default that names another one is a mistake', async () => {
    expect(await problemsOf({ default: 's3/blog' })).toEqual([
      'default: "s3/blog" can\'t be used. The setting "default" does not match a destination. Available: "local/Default".',
    ])
    expect(await problemsOf({ default: 'local' })).toEqual([])
  })
})

describe('flags', () => {
  it('fill sections that the file does not have', async () => {
    const flags = {
      server: { key: '0123', port: undefined },
      auth: { anonymous: true },
      log: { level: undefined },
    }
    const { settings } = await load({ server: { host: '::1' } }, { flags })
    expect(settings).toMatchObject({
      server: { key: '0123', host: '::1', port: 36677 },
      auth: { anonymous: true },
      log: { level: 'info' },
    })
  })

  it('are checked, too', async () => {
    expect(await problemsOf({}, { flags: { log: { level: 'loud' } } })).toEqual([
      expect.stringMatching(/^log\.level: must be one of/),
    ])
  })

  it('do not hide that a section of the file is no object', async () => {
    expect(await problemsOf({ server: 'x' }, { flags: { server: { port: 1 } } })).toEqual([
      'server: must be an object, not a string',
    ])
  })
})

describe('a PicGo or PicList file', () => {
  const unbuilt =
    ['upyun', 'github', 'imgur', 'smms', 'tcyun', 'aliyun', 'qiniu'].find(
      type => !PROVIDER_TYPES.includes(type),
    ) ?? 'picgo-cloud'
  const local = { path: '/srv/pictures', customUrl: 'https://img.example', webPath: '' }
  const named =
    'Files at local/Default get names such as "name-1a2b3c4d.png", so that no file overwrites another. To change that, set "keyTemplate".'

  it('is used as it is', async () => {
    const { settings, destinations, notes } = await load({
      picBed: { uploader: 'local', current: 'local', local },
      settings: { server: { port: 1234, host: '127.0.0.1' }, serverKey: 'a ${key}' },
      picgoPlugins: {},
    })
    expect(destinations).toMatchObject([
      {
        type: 'local',
        name: 'Default',
        options: { directory: '/srv/pictures', urlPrefix: 'https://img.example' },
      },
    ])
    expect(settings).toMatchObject({ default: 'local/Default', server: { port: 1234, key: 'a ${key}' } })
    expect(notes).toEqual([named])
  })

  it('may be changed by the environment and by flags', async () => {
    const { settings } = await load(
      { picBed: { uploader: 'local', local } },
      {
        env: { UPLOAD_SERVER_KEY: 'k', UPLOAD_SERVER__PROVIDERS__LOCAL__DEFAULT__ONCONFLICT: 'rename' },
        flags: { server: { port: 9 } },
      },
    )
    expect(settings.server).toMatchObject({ key: 'k', port: 9 })
  })

  it('is refused when there is no provider for the uploader in use, with the reason', async () => {
    for (const extra of [{}, { local }]) {
      const problems = await problemsOf({
        picBed: { uploader: unbuilt, [unbuilt]: { token: 'x' }, ...extra },
      })
      expect(problems[0]).toMatch(new RegExp(`^"picBed.${unbuilt}" was skipped: `))
      expect(problems.join()).toContain(`"picBed.uploader" is "${unbuilt}", which was skipped: `)
    }
  })

  it('is refused when PicGo has just been installed and nothing is filled in', async () => {
    expect(await problemsOf({ picBed: { uploader: 'smms', current: 'smms' }, picgoPlugins: {} })).toEqual([
      '"picBed" has no destination that can be imported.',
      '"picBed.uploader" is "smms", which has no usable settings. Complete them, or choose another uploader.',
    ])
  })

  it('is refused when the uploader in use is not filled in, with the reason', async () => {
    const problems = await problemsOf({
      picBed: { uploader: 'local', local: { customUrl: 'https://img.example' } },
    })
    expect(problems).toContain(
      '"picBed.local" is the uploader in use, but it is not valid here: "directory" is missing. It must be a string.',
    )
    expect(problems.join('\n')).not.toMatch(/default:|Available:/)
  })

  it('loses the uploaders for which there is no provider, with a note, when another one is in use', async () => {
    const config = { picBed: { uploader: 'local', local, [unbuilt]: { token: 'hunter2' } } }
    const { destinations, notes } = await load(config)
    expect(destinations.map(({ type }) => type)).toEqual(['local'])
    expect(notes).toEqual([expect.any(String), named])
    expect(notes[0]).toMatch(new RegExp(`skipped: .*"?${unbuilt}"?|${unbuilt}.* was skipped`))
    expect(notes[0]).not.toContain('hunter2')
  })

  it('has its mistakes reported like any other', async () => {
    const bad = { ...local, customUrl: 'https://img.example/a' }
    expect(
      await problemsOf({ picBed: { uploader: 'local', local: bad } }, { env: { UPLOAD_SERVER_PORT: 'x' } }),
    ).toEqual(['server.port: must be a number, not a string'])
  })
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
