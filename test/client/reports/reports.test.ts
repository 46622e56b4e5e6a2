import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openReports, type ReportOptions, writeReports } from '../../../src/client/reports/reports.ts'
import { toSummary } from '../../../src/client/reports/summary.ts'
import type { Result } from '../../../src/client/result.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const link = (n: number | string) => `https://img.example/${n}.png`
const FACTS = { size: 1024, contentType: 'image/png', width: 3, height: 2 }
const pictures = (count: number): Result[] =>
  Array.from({ length: count }, (_, n) => ({ name: `out/${n}.png`, url: link(n), ...FACTS }))
const FAILED: Result = { name: 'a&"b"<c>\u0007.png', error: 'it is <too> large & "bad"', code: 'too_large' }

/** Text of a report on some results. */
async function report(options: ReportOptions, file: string, results: readonly Result[]): Promise<string> {
  const cwd = await makeDirectory()
  const env = { GITHUB_OUTPUT: join(cwd, 'output') }
  await writeFile(join(cwd, file), 'of a run before\n').catch(() => {})
  await writeReports(await openReports(options, { cwd, env }), results, 1234)
  return readFile(join(cwd, file), 'utf8')
}

it('a report that can not be written is named, and keeps no other one from being told', async () => {
  const cwd = await makeDirectory()
  const env = { GITHUB_OUTPUT: join(cwd, 'output'), GITHUB_STEP_SUMMARY: join(cwd, 'no/summary') }
  const reports = await openReports({ junit: '/dev/full', githubOutput: true }, { cwd, env })
  const full = 'Could not write /dev/full for --junit: the disk is full.'
  expect(await writeReports(reports, pictures(1), 1)).toEqual([full])
  expect(await readFile(env.GITHUB_OUTPUT, 'utf8')).toContain(link(0))
  await expect(openReports({ githubSummary: true }, { cwd, env })).rejects.toThrow(
    /^Could not write .*no\/summary for --github-summary: no such file or folder\.$/,
  )
})

describe('attack: a symlink in the place of a report', () => {
  it.each<[string, ReportOptions]>([
    ['x.link', { junit: 'x.link' }],
    ['x.link', { gitlabDotenv: 'x.link' }],
    ['x.link', { githubOutput: true }],
    ['x.link', { githubSummary: true }],
    ['out/x', { junit: 'out/x' }],
    ['out/new/x', { junit: 'out/new/x' }],
    ['nowhere/x', { gitlabDotenv: 'nowhere/x' }],
    ['HERE/out/x', { junit: 'HERE/out/x' }],
  ])('%s is not written through: %j', async (_, options) => {
    const root = await makeDirectory()
    const cwd = join(root, 'here')
    await mkdir(cwd)
    await mkdir(join(root, 'home'))
    await writeFile(join(root, 'home/profile'), 'mine')
    await symlink('../home/profile', join(cwd, 'x.link'))
    await symlink('../home', join(cwd, 'out'))
    await symlink('../home/absent', join(cwd, 'nowhere'))
    const link = join(cwd, 'x.link')
    const env = { GITHUB_OUTPUT: link, GITHUB_STEP_SUMMARY: link }
    const given = Object.entries(options).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replace('HERE', cwd) : value,
    ])
    await expect(openReports(Object.fromEntries(given), { cwd, env })).rejects.toThrow(
      /^Could not write .* for --[a-z-]+: (?:it is a symlink.*|it is behind a symlink)\.$/,
    )
    expect(await readFile(join(root, 'home/profile'), 'utf8')).toBe('mine')
    expect(await readdir(join(root, 'home'))).toEqual(['profile'])
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
  })
})

describe('--gitlab-dotenv', () => {
  it('has the links, as many as GitLab takes, and replaces what was there', async () => {
    const text = await report({ gitlabDotenv: 'u.env' }, 'u.env', [...pictures(30), FAILED])
    expect(text.split('\n').slice(0, 4)).toEqual([
      'UPLOAD_STORED=30',
      'UPLOAD_FAILED=1',
      `UPLOAD_URL=${link(0)}`,
      `UPLOAD_URL_1=${link(0)}`,
    ])
    expect(text.match(/^UPLOAD_URL_\d+=/gm)).toHaveLength(16)
  })

  it('stays below 5 KB', async () => {
    const long = pictures(16).map(one => ({ ...one, url: link('x'.repeat(1000)) }))
    const text = await report({ gitlabDotenv: 'new/folder/u.env' }, 'new/folder/u.env', long)
    expect(Buffer.byteLength(text)).toBeLessThan(5 * 1024)
    expect(text).toMatch(/^UPLOAD_URL_3=/m)
    expect(text).toMatch(/\n$/)
  })
})

it('--junit has a case for each file, and a failure for what was not stored', async () => {
  expect(
    await report({ junit: 'j.xml' }, 'j.xml', [...pictures(1), FAILED]),
  ).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="0" skipped="0" time="1.234">
  <testsuite name="upload-server upload" tests="2" failures="1" errors="0" skipped="0" time="1.234">
    <testcase classname="upload" name="out/0.png"><system-out>${link(0)}</system-out></testcase>
    <testcase classname="upload" name="a&amp;&quot;b&quot;&lt;c&gt;?.png"><failure type="too_large" message="it is &lt;too&gt; large &amp; &quot;bad&quot;"/></testcase>
  </testsuite>
</testsuites>
`)
})

/** What the runner of GitHub reads. */
function readOutputs(text: string): Record<string, string> {
  const outputs = text.matchAll(/^(\w+)<<(.+)\n([\s\S]*?)\n\2$/gm)
  return Object.fromEntries([...outputs].map(([, name, , value]) => [name, value]))
}

it('--github-output sets what later steps read, and appends', async () => {
  const text = await report({ githubOutput: true }, 'output', [...pictures(2), FAILED])
  expect(text).toMatch(/^of a run before\n/)
  const { json = '', results = '', ...outputs } = readOutputs(text)
  expect(outputs).toEqual({
    url: link(0),
    urls: `${link(0)}\n${link(1)}`,
    markdown: `![0.png](${link(0)})\n![1.png](${link(1)})`,
    stored: '2',
    failed: '1',
  })
  for (const list of [json, await readFile(results, 'utf8')])
    expect(JSON.parse(list)).toEqual([...pictures(2), FAILED])
})

it('--github-output names a file instead of lists that are too long for the environment of a step', async () => {
  const { results = '', ...outputs } = readOutputs(
    await report({ githubOutput: true }, 'output', pictures(3000)),
  )
  expect(outputs).toMatchObject({ url: link(0), markdown: '', json: '', stored: '3000', failed: '0' })
  expect(outputs['urls']).not.toBe('')
  expect(JSON.parse(await readFile(results, 'utf8'))).toHaveLength(3000)
})

describe('--github-summary', () => {
  it('begins with totals and failures, and folds many pictures away', () => {
    const [totals, failure, other, ...rest] = toSummary([
      ...pictures(13),
      { name: 'a.pdf', url: 'https://img.example/a.pdf', contentType: 'application/pdf' },
      FAILED,
    ]).split('\n\n')
    expect(totals).toBe('**❌ 14 of 15 stored, 13 KB, 1 failed**')
    expect(failure).toBe(
      '- ❌ <code>a&#x26;&#x22;b&#x22;&#x3c;c&#x3e;&#x3f;.png</code>: <code>it is &#x3c;too&#x3e; large &#x26; &#x22;bad&#x22;</code>',
    )
    expect(other).toBe('- [<code>a.pdf</code>](https://img.example/a.pdf)')
    expect(rest[0]).toBe('<details><summary>13 images</summary>')
    expect(rest[1]?.split('\n')).toHaveLength(2 + Math.ceil(13 / 4))
    expect(rest[2]).toBe('</details>')
  })

  it('has a table of few pictures open', () => {
    const text = toSummary(pictures(2))
    expect(text).not.toContain('<details>')
    expect(text).toContain(
      '<table>\n<tr><td><code>out/0.png</code> (3 × 2)<br><a href="https://img.example/0.png">',
    )
    expect(text).toContain('width="3" alt="0.png"></a></td><td>')
  })

  it('keeps the table, and the failures out of its fold, when the failures alone would fill the comment', () => {
    const failures = Array.from({ length: 500 }, (_, n) => ({ name: `f${n}.png`, error: 'no '.repeat(100) }))
    const text = toSummary([...failures, ...pictures(20)], 60_000)
    expect(Buffer.byteLength(text)).toBeLessThan(60_000)
    const [before = '', folded = ''] = text.split('<details><summary>20 images</summary>')
    expect(before).toContain('- ❌ <code>f0.png</code>')
    expect(folded).toContain('<code>out/19.png</code>')
    expect(folded).not.toContain('❌')
    expect(before).toMatch(/^- ❌ and \d+ more$/m)
  })

  it('attack: names with markup stay text, in cells too', () => {
    const [one] = pictures(1)
    const text = toSummary([{ ...(one as Result), name: '</details>|`x`|<img src=x>\n# a.png' }])
    expect(text).not.toContain('</details>')
    expect(text).not.toMatch(/^# /m)
    expect(text.match(/<td>/g)).toHaveLength(1)
  })

  it('stays below the 1 MiB that GitHub shows', () => {
    expect(Buffer.byteLength(toSummary(pictures(20_000)))).toBeLessThan(1024 * 1024)
    expect(toSummary(pictures(20_000))).toContain('More images do not fit here.')
  })
})
