import { readFileSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.ts'
import { makeDirectory } from './helpers/directory.ts'
import { DOCUMENTS, FENCED, inFolder } from './helpers/documents.ts'

/** Every configuration on a page, with something for the variables it takes. */
function examplesOn(page: string): { text: string; env: Record<string, string> }[] {
  const blocks = readFileSync(page, 'utf8').matchAll(/^```json.*\n([\s\S]*?)^```$/gm)
  return [...blocks].map(([, text = '']) => {
    const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name)
    return { text, env: Object.fromEntries(names.map(name => [name, sampleOf(name)])) }
  })
}

/** Keys of Azure are Base64, its tokens the query of a URL. */
function sampleOf(name: string): string {
  if (name === 'DATABASE_URL') return 'postgres://127.0.0.1/upload'
  return /SAS/.test(name) ? 'sv=2021-12-02&sig=x' : 'c2FtcGxl'.repeat(8)
}

it.each(inFolder('docs/destinations').filter(page => basename(page) !== 'README.md'))(
  '%s has an example',
  page => {
    expect(examplesOn(page)).not.toEqual([])
  },
)

const EXAMPLES = DOCUMENTS.flatMap(({ file: page }) =>
  examplesOn(page).map(example => ({ page, ...example })),
)

it.each(EXAMPLES)('$page holds a configuration that is valid: %#', async ({ page, text, env }) => {
  const cwd = await makeDirectory()
  const file = join(cwd, 'upload-server.json')
  await writeFile(file, text)
  await writeFile(join(cwd, 'key'), 'sample')
  await writeFile(join(cwd, 'jwks.json'), '{"keys":[{"kty":"RSA"}]}')
  await symlink(resolve('docs/examples'), join(cwd, 'node_modules'))
  const { destinations } = await loadConfig({ cwd, platform: 'linux', env: { HOME: cwd, ...env }, file })
  if (page.includes('destinations'))
    expect(destinations.map(({ type }) => type)).toContain(basename(page, '.md'))
})

it('docs/README.md has a link to every page, and that of destinations to theirs', () => {
  const isListed = (file: string, index: string) =>
    readFileSync(index, 'utf8').includes(`](${relative(dirname(index), file)})`)
  const pages = DOCUMENTS.map(({ file }) => file).filter(file => /^docs./.test(file))
  const indexOf = (file: string) =>
    dirname(file).endsWith('destinations') && basename(file) !== 'README.md'
      ? 'docs/destinations/README.md'
      : 'docs/README.md'
  expect(pages.filter(file => file !== 'docs/README.md' && !isListed(file, indexOf(file)))).toEqual([])
})

/** What docs-commands.test.ts can't run, by the `by=` of a block: who does instead, or why nobody. */
const RUN_BY = new Map([
  ['clone', '.ci/installs: it replaces the packages that these tests run with'],
  ['container', '.ci/container, which needs root and takes minutes'],
  [
    'compose',
    '.ci/container runs the example, with images of its own. These commands take those of Docker Hub',
  ],
  [
    'cluster',
    'nobody: it takes a Kubernetes cluster. test/system/replicas-example.test.ts checks the manifests',
  ],
  ['bench', '.ci/nightly measures the quick rows; all of them take half an hour'],
  ['systemd', 'nobody: it takes a user session of systemd. test/system/service.test.ts verifies the unit'],
  ['launchd', 'nobody: it takes macOS. test/system/service.test.ts reads the file'],
  ['windows', 'nobody'],
  ['promtool', 'test/system/monitoring.test.ts'],
  ['postgres', 'test/cli/backup.test.ts, with a PostgreSQL of its own'],
  ['host', 'test/cli/markdown.test.ts, with a host of its own'],
  ['undo', 'test/cli/markdown.test.ts'],
  ['typora', 'test/cli/markdown.test.ts, with folders of its own'],
])

/** `sh` is run by docs-commands.test.ts, `sh server` keeps running, `console` is compared, the shells are those of completion.test.ts, `js` is that of docs/examples, test/system/cli/playwright.test.ts or docs-commands.test.ts, which also runs `python`. */
const KIND =
  /^(?:sh(?: server)?|(?:sh|bat) by=(?<by>\w+)|console|js|python|zsh|fish|powershell|(?:json|text)(?: file=[\w./-]+)?|yaml)$/

it.each(DOCUMENTS)('$file has no command that nobody runs', ({ file, blocks }) => {
  for (const { kind, code } of blocks) {
    const known = KIND.exec(kind)
    expect(known, `a block of the kind "${kind}":\n${code}`).not.toBeNull()
    const by = known?.groups?.['by']
    if (by !== undefined) expect([...RUN_BY.keys()]).toContain(by)
  }
  const prose = readFileSync(file, 'utf8').replace(FENCED, '')
  expect(prose.match(/(?<=\n\n) {4,}[^ -].*/g) ?? [], 'commands stand in blocks with their kind').toEqual([])
})
