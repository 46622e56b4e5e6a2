import { describe, expect, it } from 'vitest'
import type { ConfigError } from '../../src/config/load.ts'
import { findRisks } from '../../src/config/risks.ts'
import { openConfiguredDestinations } from '../../src/server/open-destinations.ts'
import { type LoadWith, load as loadAny } from '../helpers/load-config.ts'

const LOCAL = { local: { Default: { directory: 'pictures', serve: true } } }

const load = (config: object, options?: LoadWith) => loadAny({ providers: LOCAL, ...config }, options)

it('a mistake names the variable, also of an .env file, and the flag, whichever wins', async () => {
  const dotenv = 'UPLOAD_SERVER__LIMITS__FILES=many\nUPLOAD_SERVER__LIMTS__FILES=1\n'
  const env = { UPLOAD_SERVER_PORT: 'x', UPLOAD_SERVER_LOG_LEVEL: 'y' }
  const flags = { log: { level: 'z' } }
  const { message } = await load({ server: { port: 1 } }, { env, flags, files: { '.env': dotenv } }).then(
    () => expect.fail('this should have failed'),
    (error: ConfigError) => error,
  )
  expect(message.split('\n  ').slice(1).sort()).toEqual([
    expect.stringMatching(/^UPLOAD_SERVER__LIMTS__FILES in .*\.env: does not match a setting/),
    expect.stringMatching(/^limits\.files: must be a .* \(UPLOAD_SERVER__LIMITS__FILES in .*\/\.env\)$/),
    expect.stringMatching(/^log\.level: .* \(--log-level\)$/),
    'server.port: must be a number, not a string (UPLOAD_SERVER_PORT)',
  ])
})

describe('config validate warns of', () => {
  async function risksOf(config: object): Promise<string[]> {
    const loaded = await load(config)
    return findRisks(loaded, await openConfiguredDestinations(loaded, { warn: () => {}, env: {} }))
  }

  it('keys that are soon guessed, and names that replace each other', async () => {
    const providers = { local: { Default: { ...LOCAL.local.Default, onConflict: 'replace' } } }
    const server = { key: 'abc' }
    const risks = await risksOf({ server, keyTemplate: '{Y}/{filename}{extname}', providers })
    expect(risks).toEqual([
      expect.stringMatching(/^server\.key is too short \(3 characters\)/),
      expect.stringMatching(/^keyTemplate: at local\/Default, a new file replaces an existing one of the/),
    ])
    expect(risks.join()).not.toContain('abc')
  })

  it('nothing in the defaults, nor where the later file is stored beside the earlier one, or the host names it', async () => {
    expect(await risksOf({})).toEqual([])
    const http = { host: { url: 'https://img.example.com/', resultUrl: 'data.url' } }
    const keyTemplate = '{filename}{extname}'
    expect(await risksOf({ default: 'local', keyTemplate, providers: { ...LOCAL, http } })).toEqual([])
  })

  const LOSSY = /^keyTemplate: at http\/put, a new file .* Add \{sha256-8\} to the key template\.$/
  it.each([
    ...['{filename}', '{ms}', '{str-2}', '{md5-2}'].map(name => [name, [expect.stringMatching(LOSSY)]]),
    ...['{str-8}', '{Y}{m}{d}{h}{i}{s}{ms}', '{timestamp}'].map(name => [name, []]),
  ])('%s at a host that can not say what is there', async (name, risks) => {
    const url = 'https://img.example.com/{key}'
    const http = { put: { url, method: 'PUT', body: 'raw', resultUrl: url } }
    expect(await risksOf({ keyTemplate: `${name}{extname}`, providers: { http } })).toEqual(risks)
  })
})

describe('a reverse proxy whose clients may be taken for local ones:', () => {
  const PUBLIC = { publicUrl: 'https://img.example.com' }
  const notesFor = async (server: object, auth: object) => (await load({ server, auth })).notes.join('\n')

  it.each<[string, object, object?]>([
    ['server.publicUrl', PUBLIC],
    ['server.publicUrl', { ...PUBLIC, trustProxy: ['loopback'] }],
    ['server.trustProxy', { trustProxy: ['10.0.0.2'] }],
    ['server.publicUrl', { publicUrl: 'http://192.0.2.2:36677' }],
    ['server.publicUrl', { host: '0.0.0.0', publicUrl: 'http://img.example.com' }],
    ['', {}],
    ['', PUBLIC, { loopbackExempt: false }],
    ['', { ...PUBLIC, host: '/run/upload-server.sock' }],
    ['', { publicUrl: 'http://localhost:36677' }],
    ['', { publicUrl: 'http://[::1]:36677' }],
    ['', { host: '0.0.0.0', publicUrl: 'http://192.0.2.2:36677' }],
  ])('%j says so: %j %j', async (setting, server, auth = {}) => {
    const note = `^${setting} is set, so a reverse proxy.*auth\\.loopbackExempt to false`
    expect(await notesFor(server, auth)).toMatch(setting === '' ? /^$/ : new RegExp(note))
  })
})
