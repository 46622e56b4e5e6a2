import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadConfig } from '../../src/config/load.ts'
import { type Environment, override, overridesOfVariables, withDotenv } from '../../src/config/override.ts'
import { wholeSchema } from '../../src/config/providers.ts'
import { configSchema } from '../../src/config/schema.ts'
import { unwrap } from '../../src/options.ts'
import { loadProvider, PROVIDER_TYPES } from '../../src/providers/registry.ts'
import { makeDirectory } from '../helpers/directory.ts'

const fromEnv = (env: Environment, note: (sentence: string) => void = () => {}) =>
  overridesOfVariables({ env, added: new Set() }, note)

interface Setting {
  path: string[]
  schema: z.ZodType
}

/** Every setting of a schema but what stands below records and in lists. */
function listSettings(schema: z.ZodType, path: string[] = []): Setting[] {
  const inner = unwrap(schema)
  if (!(inner instanceof z.ZodObject)) return [{ path, schema }]
  return Object.entries(inner.shape).flatMap(([name, member]) =>
    listSettings(member as z.ZodType, [...path, name]),
  )
}

const PLUGIN = fileURLToPath(
  new URL('../../docs/examples/upload-server-provider-shelf/index.js', import.meta.url),
)

/** Values for settings that only take certain texts; all others get one made from their type. */
const SAMPLES: Record<string, [text: string, value: unknown]> = {
  'network.proxy': ['socks5://proxy.example:1080', 'socks5://proxy.example:1080'],
  'network.caFile': ['/etc/ca.pem', '/etc/ca.pem'],
  'sources.url.proxy': ['http://proxy.example:3128', 'http://proxy.example:3128'],
  plugins: [PLUGIN, [PLUGIN]],
  'server.host': ['0.0.0.0', '0.0.0.0'],
  'auth.allowedOrigins': ['https://a.example, app://x', ['https://a.example', 'app://x']],
  'server.publicUrl': ['https://img.example.com/x', 'https://img.example.com/x'],
  'server.trustProxy': ['loopback, 10.0.0.0/8', ['loopback', '10.0.0.0/8']],
  'auth.keys': ['[{"name":"ci","key":"k1"}]', [{ name: 'ci', key: 'k1' }]],
  'auth.tokens': [
    '[{"name":"iap","preset":"google-iap","audience":"/projects/1/apps/a"}]',
    [{ name: 'iap', preset: 'google-iap', audience: '/projects/1/apps/a', claims: {} }],
  ],
  'auth.reverseProxy.userHeader': ['X-User', 'X-User'],
  'auth.reverseProxy.destinations': ['local', ['local']],
  'auth.reverseProxy.sources': ['form, url', ['form', 'url']],
  'auth.reverseProxy.fileSize': ['3MB', 3 * 1024 * 1024],
  'auth.reverseProxy.types': ['image/*, text/plain', ['image/*', 'text/plain']],
  'sources.path.roots': ['/srv/a, /srv/b', ['/srv/a', '/srv/b']],
  default: ['local', 'local'],
  keyTemplate: ['{uuid}{extname}', '{uuid}{extname}'],
  'finalization.hooks': [
    '[{"name":"a","command":["x"]}]',
    [{ name: 'a', command: ['x'], required: true, timeout: expect.any(Number) }],
  ],
  'database.path': ['/srv/store.db', '/srv/store.db'],
  'limits.fileSize': ['3MB', 3 * 1024 * 1024],
  'limits.jsonBody': ['3MB', 3 * 1024 * 1024],
  'limits.memory': ['3MB', 3 * 1024 * 1024],
  'finalization.keep': ['2d', 2 * 24 * 60 * 60_000],
  'images.timeout': ['5s', 5000],
  'images.format': ['webp', 'webp'],
  'images.watermark.image': ['/srv/mark.png', '/srv/mark.png'],
  'images.watermark.font': ['/srv/font.ttf', '/srv/font.ttf'],
  'images.watermark.color': ['#123456', '#123456'],
  'images.watermark.opacity': ['0.5', 0.5],
  'images.watermark.scale': ['0.5', 0.5],
  'images.allowFromRequest': ['format, size', ['format', 'size']],
}

/** What else has to be set, by the section or the setting that needs it. */
const BESIDE: Record<string, Record<string, string>> = {
  'auth.reverseProxy': {
    UPLOAD_SERVER__AUTH__REVERSEPROXY__FROM: '::1',
    UPLOAD_SERVER__AUTH__REVERSEPROXY__PRESET: 'authelia',
  },
  'auth.reverseProxy.preset': {
    UPLOAD_SERVER__AUTH__REVERSEPROXY__FROM: '::1',
    UPLOAD_SERVER__AUTH__REVERSEPROXY__USERHEADER: 'X-User',
  },
  'database.driver': { UPLOAD_SERVER__DATABASE__URL: 'postgres://u:p@h/db' },
  'images.resize.enlarge': { UPLOAD_SERVER__IMAGES__RESIZE__WIDTH: '300' },
  'images.watermark': { UPLOAD_SERVER__IMAGES__WATERMARK__TEXT: 'mine' },
}
/** Settings without a default, of which none may be missing: they are set together. */
const TOGETHER = [
  'auth.reverseProxy.from',
  'auth.reverseProxy.secretHeader.name',
  'auth.reverseProxy.secretHeader.value',
  'auth.reverseProxy.quota.files',
  'auth.reverseProxy.quota.bytes',
  'auth.reverseProxy.quota.per',
]
const NEEDS_NOTHING = ['images.watermark.image', 'images.watermark.text']

function sampleOf({ path, schema }: Setting, before: unknown): [string, unknown] {
  const sample = SAMPLES[path.join('.')]
  if (sample) return sample
  const inner = unwrap(schema)
  if (inner instanceof z.ZodString && typeof before === 'number') return ['90s', 90_000]
  if (inner instanceof z.ZodBoolean) return [String(!before), !before]
  if (inner instanceof z.ZodNumber) return [String(Number(before ?? 1) + 1), Number(before ?? 1) + 1]
  if (inner instanceof z.ZodArray) return ['a.example,b.example', ['a.example', 'b.example']]
  if (inner instanceof z.ZodEnum) {
    const other = inner.options.find(option => option !== before)
    return [String(other), other]
  }
  return ['0123', '0123']
}

function pick(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], value)
}

async function load(env: Record<string, string>, place?: string) {
  const directory = place ?? (await makeDirectory())
  const xdg = { XDG_CONFIG_HOME: directory, XDG_DATA_HOME: directory }
  return loadConfig({ env: { ...xdg, ...env }, platform: 'linux', cwd: directory })
}

const SETTINGS = listSettings(configSchema).filter(
  ({ path }) => path[0] !== '$schema' && path[0] !== 'providers',
)

describe('UPLOAD_SERVER__… sets', () => {
  it('knows the settings it tries', () => {
    const names = SETTINGS.map(({ path }) => path.join('.'))
    expect(names.length).toBeGreaterThan(30)
    expect(Object.keys(SAMPLES).filter(name => !names.includes(name))).toEqual([])
  })

  it('auth.reverseProxy and its secret, which need all of their members', async () => {
    const { settings } = await load({
      UPLOAD_SERVER__AUTH__REVERSEPROXY__FROM: '10.0.0.1, ::1',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__PRESET: 'authelia',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__SECRETHEADER__NAME: 'X-Proxy-Secret',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__SECRETHEADER__VALUE: '0123',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__QUOTA__FILES: '5',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__QUOTA__BYTES: '1KB',
      UPLOAD_SERVER__AUTH__REVERSEPROXY__QUOTA__PER: '1d',
    })
    expect(TOGETHER.map(name => pick(settings, name.split('.')))).toEqual([
      ['10.0.0.1', '::1'],
      'X-Proxy-Secret',
      '0123',
      5,
      1024,
      24 * 60 * 60_000,
    ])
  })

  const alone = SETTINGS.filter(({ path }) => !TOGETHER.includes(path.join('.')))
  it.each(alone.map(setting => [setting.path.join('.'), setting] as const))('%s', async (_, setting) => {
    const { path } = setting
    const name = path.join('.')
    const beside = NEEDS_NOTHING.includes(name) ? {} : (BESIDE[name] ?? BESIDE[path.slice(0, -1).join('.')])
    const before = pick((await load({ ...beside })).settings, path)
    const [text, value] = sampleOf(setting, before)
    expect(value).not.toEqual(before)
    const variable = `UPLOAD_SERVER__${path.join('__')}`
    for (const spelling of [variable.toUpperCase(), variable, variable.toLowerCase()]) {
      const { settings } = await load({ ...beside, [spelling]: text })
      expect(pick(settings, path), spelling).toEqual(value)
    }
    const { settings } = await load({ ...beside, [variable.toUpperCase()]: '' })
    expect(pick(settings, path)).toEqual(before)
  })

  it.each(PROVIDER_TYPES)('every option of %s', async type => {
    const provider = await loadProvider(type)
    const schema = await wholeSchema([type])
    for (const option of Object.keys(provider?.config.shape ?? {})) {
      const problems: string[] = []
      const variable = `UPLOAD_SERVER__PROVIDERS__${type}__BLOG__${option}`.toUpperCase()
      const config = override({}, fromEnv({ [variable]: 'x' }), schema, path => problems.push(path))
      expect(problems).toEqual([])
      expect(Object.keys(pick(config, ['providers', type, 'blog']) as object)).toEqual([option])
    }
  })

  it('a whole destination', async () => {
    const { settings, destinations } = await load({
      UPLOAD_SERVER__PROVIDERS__LOCAL__DEFAULT__DIRECTORY: '/srv/pictures',
      UPLOAD_SERVER__PROVIDERS__LOCAL__DEFAULT__SERVE: 'true',
      UPLOAD_SERVER__PROVIDERS__LOCAL__DEFAULT__KEYTEMPLATE: '{uuid}',
      UPLOAD_SERVER__PROVIDERS__LOCAL__BLOG: '{"directory":"/srv/blog","urlPrefix":"https://blog.example"}',
      UPLOAD_SERVER__DEFAULT: 'local/Default',
    })
    expect(settings.default).toBe('local/Default')
    expect(destinations).toMatchObject([
      { type: 'local', name: 'Default', options: { directory: '/srv/pictures', serve: true } },
      { type: 'local', name: 'blog', options: { directory: '/srv/blog' } },
    ])
    expect(destinations[0]?.common.keyTemplate).toBe('{uuid}')
  })
})

describe('the short names', () => {
  it.each([
    ['UPLOAD_SERVER_HOST', '::1', ['server', 'host'], '::1'],
    ['UPLOAD_SERVER_PORT', '8080', ['server', 'port'], 8080],
    ['UPLOAD_SERVER_KEY', '0123', ['server', 'key'], '0123'],
    ['UPLOAD_SERVER_KEY', 'true', ['server', 'key'], 'true'],
    ['UPLOAD_SERVER_KEY', ' a=b#c"d ', ['server', 'key'], ' a=b#c"d '],
    ['UPLOAD_SERVER_PUBLIC_URL', 'https://i.example', ['server', 'publicUrl'], 'https://i.example'],
    ['UPLOAD_SERVER_LOG_LEVEL', 'debug', ['log', 'level'], 'debug'],
    ['upload_server_port', '8080', ['server', 'port'], 8080],
  ])('%s=%s sets %j', async (name, text, path, value) => {
    const { settings, notes } = await load({ [name]: text })
    expect(pick(settings, path)).toBe(value)
    expect(notes.join()).not.toContain(name)
  })

  it.each(['UPLOAD_SERVER_HOST', 'UPLOAD_SERVER_PORT', 'UPLOAD_SERVER_KEY', 'UPLOAD_SERVER_LOG_LEVEL'])(
    '%s is not set when it is empty',
    async name => {
      const place = await makeDirectory()
      expect((await load({ [name]: '' }, place)).settings).toEqual((await load({}, place)).settings)
    },
  )
})

function apply(config: unknown, env: Environment) {
  const problems: string[] = []
  const notes: string[] = []
  const report = (path: string, message: string) => problems.push(`${path}: ${message}`)
  const overrides = fromEnv(env, note => notes.push(note))
  const value = override(config, overrides, configSchema, report)
  return { value, problems, notes }
}

describe('settings of the environment', () => {
  it.each([
    'UPLOAD_SERVER__',
    'UPLOAD_SERVER__SEVER__PORT',
    'UPLOAD_SERVER__SERVER__PROT',
    'UPLOAD_SERVER__SERVER__PORT__X',
    'UPLOAD_SERVER__SERVER__',
    'UPLOAD_SERVER__AUTH__KEYS__0__KEY',
    'UPLOAD_SERVER__CONSTRUCTOR',
    'UPLOAD_SERVER____PROTO__',
    'UPLOAD_SERVER__SERVER__TOSTRING',
    'Upload_Server__Sever',
  ])('reports %s by its name', variable => {
    const { problems, notes } = apply({ auth: { keys: [{ key: 'k' }] } }, { [variable]: 'x' })
    expect(notes).toEqual([])
    expect(problems).toHaveLength(1)
    expect(problems[0]?.startsWith(`${variable}: does not match a setting`)).toBe(true)
  })

  it.each([
    ['UPLOAD_SERVER__SERVER__PROT', 'does not match a setting. Did you mean "port"?'],
    ['UPLOAD_SERVER__SHUTDOWN__WAIT', 'does not match a setting. Available: grace'],
  ])('says what there is instead of %s', (variable, message) => {
    expect(apply({}, { [variable]: 'x' }).problems).toEqual([`${variable}: ${message}`])
  })

  it('reports variables of providers that do not exist', async () => {
    await expect(load({ UPLOAD_SERVER__PROVIDERS__NOPE__X__Y: '1' })).rejects.toThrow(
      /UPLOAD_SERVER__PROVIDERS__NOPE__X__Y: does not match a setting/,
    )
  })

  it.each(['UPLOAD_SERVER_PROT', 'UPLOAD_SERVER_SERVER_PORT', 'UPLOAD_SERVER_VERSION'])(
    'mentions %s, which looks like one of ours, without failing',
    variable => {
      const { value, problems, notes } = apply({}, { [variable]: 'x' })
      expect({ value, problems }).toEqual({ value: {}, problems: [] })
      expect(notes).toEqual([
        expect.stringMatching(
          new RegExp(`^The environment variable ${variable} is ignored. Available: .*UPLOAD_SERVER_PORT,`),
        ),
      ])
    },
  )

  it('is not led astray by what Kubernetes sets for a service named upload-server', () => {
    const env = {
      UPLOAD_SERVER_SERVICE_HOST: '10.0.0.7',
      UPLOAD_SERVER_SERVICE_PORT: '36677',
      UPLOAD_SERVER_SERVICE_PORT_HTTP: '36677',
      UPLOAD_SERVER_PORT: 'tcp://10.0.0.7:36677',
      UPLOAD_SERVER_PORT_36677_TCP: 'tcp://10.0.0.7:36677',
      UPLOAD_SERVER_PORT_36677_TCP_ADDR: '10.0.0.7',
    }
    expect(apply({}, env)).toEqual({ value: {}, problems: [], notes: [] })
  })

  it('leaves everything else in the environment alone', () => {
    const env = {
      PATH: '/bin',
      constructor: 'x',
      toString: 'x',
      UPLOAD: 'x',
      SERVER__PORT: '1',
      a: undefined,
    }
    const others: Environment = { ...env, UPLOAD_SERVER_CONFIG: '/x.json', XUPLOAD_SERVER__SERVER__PORT: '1' }
    expect(apply({}, others)).toEqual({ value: {}, problems: [], notes: [] })
  })

  it('keeps what the file says beside', () => {
    const file = { server: { host: 'h', port: 1 }, limits: { files: 3 } }
    const { value } = apply(file, { UPLOAD_SERVER_PORT: '2' })
    expect(value).toEqual({ server: { host: 'h', port: 2 }, limits: { files: 3 } })
    expect(file.server.port).toBe(1)
  })

  it('finds destinations whatever the case of their name', async () => {
    const schema = await wholeSchema(['local'])
    const file = { providers: { local: { MyBlog: { directory: '/a' } } } }
    const env = { UPLOAD_SERVER__PROVIDERS__LOCAL__MYBLOG__SERVE: 'true' }
    expect(override(file, fromEnv(env), schema, () => {})).toEqual({
      providers: { local: { MyBlog: { directory: '/a', serve: true } } },
    })
  })

  it.each([null, 'x', 7, ['x']])('does not hide that a section of the file is %j', section => {
    const { value, problems } = apply({ server: section }, { UPLOAD_SERVER_PORT: '1' })
    expect({ value, problems }).toEqual({ value: { server: section }, problems: [] })
  })

  it.each<[string, string, unknown]>([
    ['AUTH__ALLOWEDORIGINS', 'https://a.example', ['https://a.example']],
    ['AUTH__ALLOWEDORIGINS', ' a , b ', ['a', 'b']],
    ['AUTH__ALLOWEDORIGINS', '["a","b,c"]', ['a', 'b,c']],
    ['AUTH__ALLOWEDORIGINS', '[]', []],
    ['AUTH__ALLOWEDORIGINS', '["a"', '["a"'],
    ['LIMITS__FILESIZE', '1KB', '1KB'],
    ['LIMITS__FILES', '7', 7],
    ['LIMITS__FILES', 'many', 'many'],
    ['AUTH__ANONYMOUS', 'true', true],
    ['AUTH__ANONYMOUS', 'yes', 'yes'],
    ['LOG__LEVEL', 'info', 'info'],
    ['DATABASE__URL', '12', '12'],
  ])('reads %s=%s as %j', (name, text, value) => {
    const [section = '', option = ''] = name.split('__')
    const config = apply({}, { [`UPLOAD_SERVER__${name}`]: text }).value as Record<string, object>
    const found = Object.entries(config[section.toLowerCase()] ?? {})
    expect(found).toEqual([[expect.stringMatching(new RegExp(`^${option}$`, 'i')), value]])
  })
})

describe('what is wrong in a variable', () => {
  it.each([
    [{ UPLOAD_SERVER_PORT: 'http' }, 'server.port: must be a number, not a string'],
    [{ UPLOAD_SERVER_PORT: '65536' }, 'server.port: must be 65535 or less'],
    [{ UPLOAD_SERVER__AUTH__ANONYMOUS: 'yes' }, 'auth.anonymous: must be a boolean, not a string'],
    [{ UPLOAD_SERVER__DEFAULT: 's3/nowhere' }, 'default: "s3/nowhere" can\'t be used.'],
    [{ UPLOAD_SERVER__AUTH__KEYS: '[{"name":"a"}]' }, 'auth.keys[0].key: is missing. It must be a string'],
  ])('%j is reported like a mistake in the file', async (env, problem) => {
    await expect(load(env)).rejects.toThrow(problem)
  })
})

describe('withDotenv', () => {
  it('reads the file; the environment wins', async () => {
    const directory = await makeDirectory()
    const file = join(directory, '.env')
    await writeFile(file, '# comment\nA=1\nexport B="1 1"\nC=\'1\'\n')
    expect(await withDotenv({ A: '0', EMPTY: '' }, directory)).toEqual({
      env: { A: '0', B: '1 1', C: '1', EMPTY: '' },
      file,
      added: new Set(['B', 'C']),
    })
  })

  it('is not bothered by a missing file, or by a folder of that name', async () => {
    const [without, withFolder] = [await makeDirectory(), await makeDirectory()]
    await mkdir(join(withFolder, '.env'))
    await writeFile(join(without, 'file'), '')
    const env = { A: '0' }
    for (const directory of [without, withFolder, join(without, 'absent'), join(without, 'file')])
      expect(await withDotenv(env, directory)).toEqual({ env, added: new Set() })
  })
})
