import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { configSchema } from '../src/config/schema.ts'
import { loadProvider, PROVIDER_TYPES } from '../src/providers/registry.ts'
import { examplesOf } from './helpers/documents.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const isThere = (path: string): boolean => existsSync(join(ROOT, path))

/** Paths of all files below a folder that end so, from the root. */
function listFiles(folder: string, end: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith(end))
    .map(entry => relative(ROOT, join(entry.parentPath, entry.name)))
    .sort()
}

const SOURCES = listFiles('src', '.ts')
const PROVIDER_TESTS = ['test', 'test/system'].flatMap(tier =>
  listFiles(`${tier}/providers`, '.ts').map(read),
)

/** Presets of S3 that are providers, because PicGo has an uploader for each. */
const VENDORS = ['aliyun', 'qiniu', 'tcyun']

describe('every provider', () => {
  it('is in the list', () => {
    const others = ['contract', 'kit', 'registry', 'shared']
    const names = readdirSync(join(ROOT, 'src/providers')).map(name => name.replace(/\.ts$/, ''))
    expect([...names.filter(name => !others.includes(name)), ...VENDORS].sort()).toEqual(PROVIDER_TYPES)
  })

  describe.each(PROVIDER_TYPES)('%s', type => {
    it('exports itself under the name of its file, and calls itself so', async () => {
      expect((await loadProvider(type))?.type).toBe(type)
    })

    it('says what people are told of it', async () => {
      const { about } = (await loadProvider(type)) ?? {}
      expect(about?.choices).not.toHaveLength(0)
    })

    it('says whether it can sign addresses, which its examples show', async () => {
      const provider = await loadProvider(type)
      const signs = provider?.about?.signs
      for (const [name, options] of Object.entries(examplesOf(type))) {
        const target = await provider?.open(provider.config.parse(options), { name, warn: () => {} })
        const isSaid = typeof signs === 'string' ? signs in options : signs === true
        expect(target?.sign !== undefined, name).toBe(isSaid)
        await target?.close?.()
      }
    })

    it('describes every option', async () => {
      const provider = await loadProvider(type)
      expect(listUndescribed(z.toJSONSchema(provider?.config ?? z.never(), DESCRIBE))).toEqual([])
    })

    it('has a test, unless it is an image host: providers/image-hosts.test.ts tries them all', async () => {
      const isHost = (await loadProvider(type))?.about?.family === 'host'
      const file = VENDORS.includes(type) ? 's3/vendors' : type
      expect(isHost || PROVIDER_TESTS.some(test => test.includes(`/src/providers/${file}`))).toBe(true)
    })

    it('has a page in docs/destinations with an example and its options', () => {
      expect(Object.keys(examplesOf(type))).not.toHaveLength(0)
      expect(read(`docs/destinations/${type}.md`)).toContain('<!-- generated: options -->')
    })
  })
})

const DESCRIBE = { io: 'input', unrepresentable: 'any' } as const

function listUndescribed(schema: z.core.JSONSchema._JSONSchema, path = ''): string[] {
  if (typeof schema === 'boolean') return []
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
    ...(typeof member === 'object' && member.description ? [] : [`${path}${name}`]),
    ...listUndescribed(member, `${path}${name}.`),
  ])
}

it('every setting is described', () => {
  expect(listUndescribed(z.toJSONSchema(configSchema, DESCRIBE))).toEqual([])
})

describe('the sources', () => {
  it.each(['express', 'multer', 'pino', 'commander', 'dotenv', 'node-fetch'])('use %s', name => {
    const imports = new RegExp(`(?:from|import\\()\\s*'${name}(?:/[^']*)?'`)
    expect(SOURCES.filter(path => imports.test(read(path)))).not.toEqual([])
  })

  it('import packages that are dependencies, and every dependency is imported', () => {
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
      read('package.json'),
    ) as Record<string, object>
    const declared = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
    const imports = /(?:\bfrom |^import |\bimport\()'((?!node:|\.)(?:@[^/']+\/)?[^/']+)/gm
    const found = new Set(
      // The build takes what the page's script imports into dist/page.
      SOURCES.filter(path => !path.startsWith('src/page/browser/')).flatMap(path =>
        [...read(path).matchAll(imports)].map(([, name = '']) => name),
      ),
    )
    expect([...found].filter(name => !declared.includes(name))).toEqual([])
    expect(Object.keys(dependencies ?? {}).filter(name => !found.has(name))).toEqual([])
  })
})

describe('a bundled package', () => {
  it.each(['zod', 'commander', 'jsonc-parser'])('%s is used by src/packages alone', name => {
    const imports = new RegExp(`(?:from|import\\()\\s*'${name}[/']`)
    expect(SOURCES.filter(path => imports.test(read(path)))).toEqual([`src/packages/${name}.ts`])
  })
})

describe('the package', () => {
  const { bin } = JSON.parse(read('package.json')) as {
    bin: Record<string, string>
  }

  it('starts by a file without logic of its own', () => {
    const lines = read(bin['upload-server'] ?? '')
      .trimEnd()
      .split('\n')
    expect(lines[0]).toBe('#!/usr/bin/env node')
    expect(lines.length).toBeLessThanOrEqual(5)
  })

  it('imports nothing that is not installed with it', () => {
    const all = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
    const declared = ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap(kind =>
      Object.keys(all[kind] ?? {}),
    )
    const imports =
      /(?:^import (?:[^"\n]* from )?|\bimport\()"((?!node:)(?:@[\w.-]+\/)?\w[\w.-]*)(?:\/[^"]*)?"/gm
    const files = readdirSync(join(ROOT, 'dist')).filter(name => name.endsWith('.js'))
    const found = files.flatMap(name => [...read(`dist/${name}`).matchAll(imports)].map(([, one]) => one))
    expect([...new Set(found)].filter(one => !declared.includes(one ?? ''))).toEqual([])
    expect(found).toContain('express')
  })
})

it('what is generated is current', async () => {
  const { stdout } = await promisify(execFile)('node', ['docs/generate.mjs', '--check'], { cwd: ROOT }).catch(
    (failed: { stdout: string }) => failed,
  )
  expect(stdout, 'run "npm run generate"; what it writes is changed where it comes from').toBe('')
})

/** The anchors that GitHub makes of the headings of a document. */
const headingsOf = (text: string): string[] =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )

describe('the documents', () => {
  const documents = [...readdirSync(ROOT).filter(name => name.endsWith('.md')), ...listFiles('docs', '.md')]

  it.each(documents)('%s links to files and headings that are there', path => {
    const prose = read(path).replace(/^```[\s\S]*?^```$/gm, '')
    const links = [...prose.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    const missing = links.filter(([, file = '', anchor]) => {
      const target = file === '' ? path : join(dirname(path), decodeURIComponent(file))
      if (!isThere(target)) return true
      return anchor !== undefined && !headingsOf(read(target)).includes(decodeURIComponent(anchor))
    })
    expect(missing.map(([link]) => link)).toEqual([])
  })
})

describe('the tests', () => {
  // This file names what it looks for.
  const tests = listFiles('test', '.ts').filter(path => path !== 'test/repository.test.ts')

  it.each(tests)('%s mocks nothing and leaves nothing out', path => {
    const text = read(path)
    expect(text).not.toMatch(/\bvi\.(?:mock|doMock|stubGlobal|spyOn|stubEnv)\(/)
    expect(text).not.toMatch(/\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|only|todo)\b/)
  })
})
