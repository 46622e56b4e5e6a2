import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Environment, override, overridesOfVariables, readDotenv } from '../../src/config/override.ts'
import { wholeSchema } from '../../src/config/providers.ts'
import { configSchema } from '../../src/config/schema.ts'
import { unwrap } from '../../src/options.ts'
import { loadProvider, PROVIDER_TYPES } from '../../src/providers/registry.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { makeMachine } from '../helpers/load-config.ts'

const fromEnv = (env: Environment, note: (sentence: string) => void = () => {}) =>
  overridesOfVariables(env, note)

/** Every setting of a schema but what stands below records and in lists. */
function listSettings(schema: z.ZodType, path: string[] = []): string[][] {
  const inner = unwrap(schema)
  if (!(inner instanceof z.ZodObject)) return [path]
  return Object.entries(inner.shape).flatMap(([name, member]) =>
    listSettings(member as z.ZodType, [...path, name]),
  )
}

const loadWith = async (env: Record<string, string>) => (await makeMachine()).load({ env })

function pick(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], value)
}

describe('UPLOAD_SERVER__… sets', () => {
  const settings = listSettings(configSchema).filter(([section]) => section !== 'providers')

  it.each(settings.map(path => [path.join('.'), path] as const))('%s', (_, path) => {
    const variable = `UPLOAD_SERVER__${path.join('__')}`
    for (const spelling of [variable.toUpperCase(), variable, variable.toLowerCase()]) {
      const { value, problems } = apply({}, { [spelling]: 'x' })
      expect(problems).toEqual([])
      expect([pick(value, path)].flat()).toEqual(['x'])
    }
    expect(apply({}, { [variable]: '' }).value).toEqual({})
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
    const { settings, destinations } = await loadWith({
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

function apply(config: Record<string, unknown>, env: Environment) {
  const problems: string[] = []
  const notes: string[] = []
  const report = (path: string, message: string) => problems.push(`${path}: ${message}`)
  const overrides = fromEnv(env, note => notes.push(note))
  const value = override(config, overrides, configSchema, report)
  return { value, problems, notes }
}

describe('the short names', () => {
  it.each([
    ['UPLOAD_SERVER_HOST', '::1', { server: { host: '::1' } }],
    ['UPLOAD_SERVER_PORT', '8080', { server: { port: 8080 } }],
    ['UPLOAD_SERVER_KEY', '0123', { server: { key: '0123' } }],
    ['UPLOAD_SERVER_KEY', 'true', { server: { key: 'true' } }],
    ['UPLOAD_SERVER_KEY', ' a=b#c"d ', { server: { key: ' a=b#c"d ' } }],
    ['UPLOAD_SERVER_PUBLIC_URL', 'https://i.example', { server: { publicUrl: 'https://i.example' } }],
    ['UPLOAD_SERVER_LOG_LEVEL', 'debug', { log: { level: 'debug' } }],
    ['upload_server_port', '8080', { server: { port: 8080 } }],
    ['UPLOAD_SERVER_PORT', '', {}],
  ])('%s=%s sets %j', (name, text, value) => {
    expect(apply({}, { [name]: text })).toEqual({ value, problems: [], notes: [] })
  })
})

describe('settings of the environment', () => {
  it.each([
    ['UPLOAD_SERVER__', /^\. Available: /],
    ['UPLOAD_SERVER__SEVER__PORT', /^\. Did you mean "server"\?$/],
    ['UPLOAD_SERVER__SERVER__PROT', /^\. Did you mean "port"\?$/],
    ['UPLOAD_SERVER__SERVER__PORT__X', /^$/],
    ['UPLOAD_SERVER__SERVER__', /^\. Available: /],
    ['UPLOAD_SERVER__AUTH__KEYS__0__KEY', /^$/],
    ['UPLOAD_SERVER__CONSTRUCTOR', /^\. Available: /],
    ['UPLOAD_SERVER____PROTO__', /^\. Available: /],
    ['UPLOAD_SERVER__SERVER__TOSTRING', /^\. Available: /],
    ['Upload_Server__Sever', /^\. Did you mean "server"\?$/],
  ])('reports %s by its name', (variable, hint) => {
    const { problems, notes } = apply({ auth: { keys: [{ key: 'k' }] } }, { [variable]: 'x' })
    expect(notes).toEqual([])
    expect(problems).toEqual([expect.stringContaining(`${variable}: does not match a setting`)])
    expect(problems[0]?.replace(`${variable}: does not match a setting`, '')).toMatch(hint)
  })

  it.each([
    [
      'UPLOAD_SERVER__PROVIDERS__NOPE__X__Y',
      /NOPE__X__Y: does not match a setting\. Available: aliyun, .*github/,
    ],
    [
      'UPLOAD_SERVER__PROVIDERS__GITHAB__X__TOKEN',
      /X__TOKEN: does not match a setting\. Did you mean "github"\?/,
    ],
  ])('reports %s, whose provider does not exist', async (variable, problem) => {
    await expect(loadWith({ [variable]: '1' })).rejects.toThrow(problem)
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

  it('leaves everything else alone, also what Kubernetes sets for a service named upload-server', () => {
    const env: Environment = {
      ...{ PATH: '/bin', constructor: 'x', toString: 'x', UPLOAD: 'x', SERVER__PORT: '1', a: undefined },
      UPLOAD_SERVER_CONFIG: '/x.json',
      XUPLOAD_SERVER__SERVER__PORT: '1',
      UPLOAD_SERVER_SERVICE_HOST: '10.0.0.7',
      UPLOAD_SERVER_SERVICE_PORT: '36677',
      UPLOAD_SERVER_SERVICE_PORT_HTTP: '36677',
      UPLOAD_SERVER_PORT: 'tcp://10.0.0.7:36677',
      UPLOAD_SERVER_PORT_36677_TCP: 'tcp://10.0.0.7:36677',
      UPLOAD_SERVER_PORT_36677_TCP_ADDR: '10.0.0.7',
    }
    expect(apply({}, env)).toEqual({ value: {}, problems: [], notes: [] })
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

describe('a .env file', () => {
  it('is read as dotenv reads it', async () => {
    const file = join(await makeDirectory(), '.env')
    await writeFile(file, '# comment\nA=1\nexport B="1 1"\nC=\'1\'\n')
    expect(await readDotenv(file)).toEqual({ A: '1', B: '1 1', C: '1' })
  })

  it('may be missing, or a folder', async () => {
    const [without, withFolder] = [await makeDirectory(), await makeDirectory()]
    await mkdir(join(withFolder, '.env'))
    await writeFile(join(without, 'file'), '')
    for (const directory of [without, withFolder, join(without, 'absent'), join(without, 'file')])
      expect(await readDotenv(join(directory, '.env'))).toBeUndefined()
  })
})
