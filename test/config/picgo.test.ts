import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/interpolate.ts'
import { isPicGoConfig } from '../../src/config/parse.ts'
import { importPicGo as importFile } from '../../src/config/picgo/index.ts'
import { configSchema } from '../../src/config/schema.ts'

type Json = Record<string, unknown>

const FOLDER = new URL('../fixtures/picgo/', import.meta.url)
const FIXTURES = readdirSync(FOLDER).filter(name => name.endsWith('.json'))
const readFixture = (name: string): Json => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8'))

async function importPicGo(file: Json) {
  const { config, notes } = await importFile(file)
  return { config, notes: [...notes], providers: config['providers'] as Record<string, Record<string, Json>> }
}

/** Parts of files, each with its name before it, and what becomes of it after it: the configuration, and what is reported. */
const PARTS = readFileSync(new URL('parts.txt', FOLDER), 'utf8').matchAll(/^# (.*)\n(.*)\n((?: {2}.*\n)+)/gm)

/** What `config import` prints of a file, and what it reports. */
async function printed(file: Json, indent?: number): Promise<string[]> {
  const { config, notes, problem = [] } = await importFile(file)
  expect(configSchema.safeParse(config).error).toBeUndefined()
  return [JSON.stringify(config, undefined, indent), ...notes, problem].flat()
}

describe('a file of PicGo or PicList becomes a configuration, and notes say what was left out:', () => {
  it.each(FIXTURES)('%s', async name => {
    const file = readFixture(name)
    const lines = await printed(file, 2)
    expect(file).toEqual(readFixture(name))
    const golden = new URL(name.replace('.json', '.txt'), FOLDER)
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(golden.pathname)
  })

  it.each([...PARTS].map(([, name = '', text = '', becomes]) => [name, text, becomes]))(
    '%s',
    async (_, text, becomes) => {
      const lines = (await printed(JSON.parse(text ?? ''))).filter(line => !line.startsWith('Files at '))
      expect(lines.map(line => `  ${line}\n`).join('')).toBe(becomes)
    },
  )

  it.each(FIXTURES.filter(name => !/images|renaming/.test(name)))(
    'repeats no secret of %s in a note',
    async name => {
      const secrets =
        JSON.stringify(readFixture(name)).match(/\w+(?:Secret|Token|Password|Key)\b(?=")(?!":)/g) ?? []
      expect(secrets.length).toBeGreaterThan(0)
      const { notes } = await importPicGo(readFixture(name))
      for (const secret of secrets) expect(notes.join('\n')).not.toContain(secret)
    },
  )
})

describe('isPicGoConfig', () => {
  it.each([
    ...FIXTURES.map(readFixture),
    { picBed: { current: 'smms' } },
    { picBed: null },
    { server: { port: 36677 }, picBed: { uploader: 'smms' } },
    { picgoPlugins: {} },
    { uploader: { github: { configList: [] } } },
  ])('recognises file %#', value => {
    expect(isPicGoConfig(value)).toBe(true)
  })

  it.each([
    {},
    { providers: { local: { Default: { directory: '/srv', serve: true } } } },
    { server: { port: 36677 }, log: { level: 'info' } },
    { providers: {}, picBed: { uploader: 'smms' } },
    { keyTemplate: '{uuid}', uploader: { github: { configList: [] } } },
    { uploader: { github: { token: 'x' } } },
    [{ picBed: {} }],
    null,
    'picBed',
  ])('does not take %j for one of theirs', value => {
    expect(isPicGoConfig(value)).toBe(false)
  })
})

describe('whatever the file holds', () => {
  const WRONG = [null, [], [null], {}, { x: {} }, 0, -1, true, '', ' ', 'x', '\ud800', '{', '__proto__']

  function* listPaths(value: unknown, path: string[] = []): Generator<string[]> {
    if (path.length > 0) yield path
    if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) yield* listPaths(member, [...path, key])
  }

  it.each(FIXTURES)('nothing throws when any one value of %s is replaced by a wrong one', async name => {
    // Two of the wrong values for each, in turn: all of them would take a busy machine a minute.
    for (const [index, path] of [...listPaths(readFixture(name))].entries()) {
      for (const wrong of [0, 7].map(more => WRONG[(index + more) % WRONG.length])) {
        const file = readFixture(name)
        const parent = path.slice(0, -1).reduce<Json>((object, key) => object[key] as Json, file)
        parent[path.at(-1) ?? ''] = wrong
        const where = `${path.join('.')} = ${JSON.stringify(wrong)}`
        const { notes } = await importPicGo(file).catch(error => expect.fail(`${where}: ${error}`))
        expect(notes.join('\n'), where).not.toMatch(/undefined|\[object/)
      }
    }
  })

  it('what looks like a variable of ours, in a password, is text', async () => {
    const { config } = await importPicGo({
      picBed: { uploader: 'smms', smms: { token: `a\${HOME}b$\${file:/etc/passwd}` } },
      settings: { serverKey: `\${KEY}` },
    })
    const fail = (path: string, message: string) => expect.fail(`${path} ${message}`)
    expect(interpolate(config, { HOME: 'wrong' }, '/', fail).value).toMatchObject({
      server: { key: `\${KEY}` },
      providers: { smms: { Default: { token: `a\${HOME}b$\${file:/etc/passwd}` } } },
    })
  })

  it('a configuration called __proto__ is like any other', async () => {
    const configList = [{ _configName: '__proto__', token: 't' }]
    const { providers } = await importPicGo({ picBed: {}, uploader: { smms: { configList } } })
    expect(Object.keys(providers['smms'] ?? {})).toEqual(['__proto__'])
  })
})
