import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ConfigError, loadConfig } from '../../src/config/load.ts'
import { findRisks } from '../../src/config/risks.ts'
import { openConfiguredDestinations } from '../../src/server/open-destinations.ts'
import { makeDirectory } from '../helpers/directory.ts'

const LOCAL = { local: { Default: { directory: 'pictures', serve: true } } }

async function setUp(text: string, dotenv = '') {
  const cwd = await makeDirectory()
  await mkdir(join(cwd, 'x'))
  await writeFile(join(cwd, 'x', 'c.json'), text)
  await writeFile(join(cwd, 'x', '.env'), dotenv)
  const load = (
    options: { env?: Record<string, string>; flags?: Record<string, Record<string, unknown>> } = {},
  ) => loadConfig({ env: {}, platform: 'linux', cwd, file: 'x/c.json', ...options })
  return { cwd, load }
}

async function risksOf(text: string): Promise<string[]> {
  const { load } = await setUp(text)
  const config = await load()
  return findRisks(config, await openConfiguredDestinations(config, { warn: () => {}, env: {} }))
}

async function linesOf(loading: Promise<unknown>): Promise<string[]> {
  const { message } = await loading.then(
    () => expect.fail('this should have failed'),
    (error: ConfigError) => error,
  )
  return message
    .split('\n')
    .slice(1)
    .map(line => line.trim())
}

describe('a mistake names where it stands:', () => {
  it('the variable, also of an .env file, and the flag, whichever wins', async () => {
    const text = JSON.stringify({ server: { port: 1 }, providers: LOCAL })
    const { cwd, load } = await setUp(
      text,
      'UPLOAD_SERVER__LIMITS__FILES=many\nUPLOAD_SERVER__LIMTS__FILES=1\n',
    )
    const file = join(cwd, 'x', '.env')
    const env = { UPLOAD_SERVER_PORT: 'x', UPLOAD_SERVER_LOG_LEVEL: 'y' }
    expect((await linesOf(load({ env, flags: { log: { level: 'z' } } }))).sort()).toEqual([
      expect.stringMatching(/^UPLOAD_SERVER__LIMTS__FILES in .*\.env: does not match a setting/),
      `limits.files: must be a number, not a string (UPLOAD_SERVER__LIMITS__FILES in ${file})`,
      expect.stringMatching(/^log\.level: .* \(--log-level\)$/),
      'server.port: must be a number, not a string (UPLOAD_SERVER_PORT)',
    ])
  })
})

describe('what would show only later is found with the configuration:', () => {
  it.each<[object, RegExp]>([
    [
      { keyTemplate: '{year}/{monat}/{year}{extname}' },
      /^keyTemplate: has the unknown placeholders \{year\} \{monat\}; available:/,
    ],
  ])('%j', async (config, problem) => {
    const { load } = await setUp(JSON.stringify({ ...config, providers: LOCAL }))
    expect(await linesOf(load())).toEqual([expect.stringMatching(problem)])
  })

  it('"jpg" as a format', async () => {
    const { load } = await setUp(
      JSON.stringify({ providers: { local: { Default: { directory: 'x', images: { format: 'jpg' } } } } }),
    )
    expect(await linesOf(load())).toEqual([
      expect.stringMatching(
        /^providers\.local\.Default\.images\.format: must be one of: .*\. Did you mean "jpeg"\? \(line 1\)$/,
      ),
    ])
  })

  it('keys that are soon guessed, and names that replace each other', async () => {
    const providers = { local: { Default: { directory: 'pictures', serve: true, onConflict: 'replace' } } }
    const risks = await risksOf(
      JSON.stringify({ server: { key: 'abc' }, keyTemplate: '{Y}/{filename}{extname}', providers }),
    )
    expect(risks).toEqual([
      expect.stringMatching(/^server\.key is too short \(3 characters\)/),
      expect.stringMatching(
        /^keyTemplate: at local\/Default, a new file replaces an existing one of the same name/,
      ),
    ])
    expect(risks.join()).not.toContain('abc')
  })

  it('but not the defaults', async () => {
    expect(await risksOf(JSON.stringify({ providers: LOCAL }))).toEqual([])
  })

  it('nor names that repeat where the later file is stored beside the earlier one, or the host names it', async () => {
    const providers = {
      ...LOCAL,
      http: { host: { url: 'https://img.example.com/', resultUrl: 'data.url' } },
    }
    const config = { default: 'local', keyTemplate: '{filename}{extname}', providers }
    expect(await risksOf(JSON.stringify(config))).toEqual([])
  })

  it('names that repeat at a host which is told where a file lies, and can not say what is there', async () => {
    const url = 'https://img.example.com/{key}'
    const http = { put: { url, method: 'PUT', body: 'raw', resultUrl: url } }
    for (const keyTemplate of [
      '{filename}{extname}',
      '{ms}{extname}',
      '{str-2}{extname}',
      '{md5-2}{extname}',
    ])
      expect(await risksOf(JSON.stringify({ keyTemplate, providers: { http } }))).toEqual([
        expect.stringMatching(
          /^keyTemplate: at http\/put, a new file .* Add \{sha256-8\} to the key template\.$/,
        ),
      ])
    for (const keyTemplate of ['{str-8}{extname}', '{Y}{m}{d}{h}{i}{s}{ms}{extname}', '{timestamp}{extname}'])
      expect(await risksOf(JSON.stringify({ keyTemplate, providers: { http } }))).toEqual([])
  })
})
