import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeDirectory } from '../helpers/directory.ts'
import { runBuilt, runCli, runShell } from './run-cli.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/picgo/', import.meta.url))

async function withConfig(config: unknown): Promise<string> {
  const cwd = await makeDirectory()
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  await writeFile(join(cwd, 'upload-server.json'), text)
  return cwd
}

const LOCAL = { local: { Default: { directory: '/srv/pictures', serve: true } } }

describe('config validate', () => {
  it('says where the files go when all is well', async () => {
    const cwd = await withConfig({
      default: 'local/b',
      providers: { local: { a: LOCAL.local.Default, b: LOCAL.local.Default } },
    })
    expect(await runCli(['config', 'validate'], { cwd })).toEqual({
      code: 0,
      stdout: `${join(cwd, 'upload-server.json')} is valid. Destinations: local/a, local/b\n`,
      stderr: '',
    })
  })

  it('speaks of the embedded default when there is no file', async () => {
    const { code, stdout, stderr } = await runCli(['config', 'validate'], { cwd: await makeDirectory() })
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'The default configuration is valid. Destinations: local/Default\n',
    })
    expect(stderr).toContain('No destination is configured. Files are stored in')
  })

  it('says everything that is wrong', async () => {
    const cwd = await withConfig({ server: { prot: 1 }, providers: { local: { a: { directry: 'x' } } } })
    const { code, stdout, stderr } = await runCli(['config', 'validate'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.split('\n')).toHaveLength(5)
  })

  it('tells the place of a syntax error', async () => {
    const cwd = await withConfig('{\n  "server": {,}\n}')
    const { code, stderr } = await runCli(['config', 'validate'], { cwd })
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^Could not load .*upload-server\.json:\n {2}is not valid JSON: .* in line 2, column 14\n$/,
    )
  })

  it('mentions what is left out of a PicGo file', async () => {
    const cwd = await withConfig({
      picBed: { uploader: 'local', local: { path: '/srv/pictures' }, proxy: 'socks4://127.0.0.1:1' },
    })
    const { code, stderr } = await runCli(['config', 'validate'], { cwd })
    expect(code).toBe(0)
    expect(stderr).toContain('"picBed.proxy" was ignored')
  })
})

describe('config show', () => {
  it('prints everything with its defaults and no secret, as a file that can be used', async () => {
    const secrets = ['s1', 'server-key', 'from-a-file', 'postgres://u:pw@h/db']
    const cwd = await withConfig({
      server: { key: '${UPLOAD_KEY}' },
      auth: {
        keys: [
          { name: 'short', key: 's1' },
          { name: 'file', key: '${file:secret}' },
        ],
      },
      database: { driver: 'postgres', url: secrets[3] },
      providers: LOCAL,
    })
    await writeFile(join(cwd, 'secret'), `${secrets[2]}\n`)
    const { code, stdout, stderr } = await runCli(['config', 'show'], {
      cwd,
      env: { UPLOAD_KEY: 'server-key' },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const secret of secrets) expect(stdout).not.toContain(secret)
    expect(JSON.parse(stdout)).toMatchObject({
      server: { key: '[secret]', port: 36677 },
      auth: {
        keys: [
          { name: 'short', key: '[secret]' },
          { name: 'file', key: '[secret]' },
        ],
      },
      default: 'local/Default',
      providers: { local: { Default: { directory: '/srv/pictures', serve: true } } },
    })
  })
})

describe('config schema', () => {
  it('of the built program is config.schema.json, which editors load, below 160 KB', async () => {
    const { code, stdout, stderr } = await runBuilt(['config', 'schema'], { cwd: await makeDirectory() })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(await readFile(new URL('../../config.schema.json', import.meta.url), 'utf8'))
    expect(stdout.length).toBeLessThan(160 * 1024)
  })

  it('needs no configuration, right or wrong', async () => {
    expect(await runCli(['config', 'schema'], { cwd: await withConfig('{') })).toMatchObject({ code: 0 })
  })
})

describe('config.schema.json tells an editor', () => {
  const readJson = async (name: string) =>
    JSON.parse(await readFile(new URL(`../../${name}`, import.meta.url), 'utf8'))

  it('that the example is right', async () => {
    const schema = z.fromJSONSchema(await readJson('config.schema.json'))
    expect(schema.safeParse(await readJson('upload-server.example.json')).error).toBeUndefined()
    expect(schema.safeParse({}).success).toBe(true)
  })

  it.each([
    { sever: {} },
    { server: { prot: 1 } },
    { server: { port: 'x' } },
    { log: { level: 'loud' } },
    { limits: { fileSize: true } },
    { auth: { keys: [{ name: 'a' }] } },
    { providers: { nope: { a: {} } } },
    { providers: { local: { a: { serve: true } } } },
    { providers: { local: { a: { directory: 'x', directry: 'y' } } } },
  ])('that %j is wrong', async config => {
    const schema = z.fromJSONSchema(await readJson('config.schema.json'))
    expect(schema.safeParse(config).success).toBe(false)
  })
})

describe('config import', () => {
  it('prints a PicGo file as one of ours, which can be used, and what is lost beside it', async () => {
    const cwd = await makeDirectory()
    const old = {
      picBed: {
        uploader: 'local',
        local: { path: '/srv/pictures', customUrl: 'https://img.example' },
        proxy: 'socks4://x',
      },
      settings: { server: { port: 1234 }, serverKey: 'a ${b}' },
    }
    await writeFile(join(cwd, 'data.json'), `\ufeff${JSON.stringify(old)}`)
    await writeFile(join(cwd, 'picgo.db'), '')
    const { code, stderr } = await runShell('upload_server config import data.json > upload-server.json', {
      cwd,
    })
    expect(code).toBe(0)
    expect(stderr.split('\n')).toEqual([
      '"picBed.proxy" was ignored: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy.',
      expect.stringContaining('Files at local/Default get names such as "name-1a2b3c4d.png"'),
      '"picgo.db" was ignored: the gallery is not imported.',
      '',
    ])
    expect(await runCli(['config', 'validate'], { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Destinations: local/Default'),
    })
    const shown = JSON.parse((await runCli(['config', 'show'], { cwd })).stdout)
    expect(shown.server).toMatchObject({ port: 1234, key: '[secret]' })
  })

  it.each(['picgo-desktop', 'piclist-desktop', 'picgo-core-3', 'broken'])('takes the file %s', async name => {
    const path = join(FIXTURES, `${name}.json`)
    const { code, stdout } = await runCli(['config', 'import', path], { cwd: await makeDirectory() })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toHaveProperty('providers')
  })

  it.each([
    ['absent.json', undefined, 'absent.json: no such file'],
    ['.', undefined, ': it is a directory'],
    ['x.json', '{"a" 1}', 'x.json is not valid JSON: colon expected in line 1, column 6'],
    [
      'x.json',
      '{"server":{}}',
      'x.json is not a configuration of PicGo or PicList, because it has no "picBed".',
    ],
    ['x.json', '[]', 'x.json is not a configuration of PicGo or PicList, because it has no "picBed".'],
    ['x.json', 'null', 'x.json is not a configuration of PicGo or PicList, because it has no "picBed".'],
  ])('refuses %s holding %s', async (name, content, message) => {
    const cwd = await makeDirectory()
    if (content !== undefined) await writeFile(join(cwd, name), content)
    const { code, stdout, stderr } = await runCli(['config', 'import', name], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
  })
})
