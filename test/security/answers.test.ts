import { readFile, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readResponse } from '../../src/client/api/response.ts'
import { FORMATS } from '../../src/client/reports/format.ts'
import { formatLink } from '../../src/page/links.ts'
import { oneLine, toJson } from '../../src/safe-text.ts'
import { runCli, runShell } from '../cli/run-cli.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { serve } from '../uploader/sources/servers.ts'

/** What a line must not hold that a person or a build job reads. */
const HARMFUL =
  /^\s*::|##(?:\[|\w+\[)|[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]|\u{e0001}/mu

async function sendTo(answer: unknown, args: string[] = [], files = ['a.png']) {
  const { origin: url } = await serve((_, response) => {
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  })
  const cwd = await makeDirectory()
  for (const file of files) await writeFile(join(cwd, file), 'content')
  const env = { GITHUB_STEP_SUMMARY: join(cwd, 'summary.md'), GITHUB_OUTPUT: join(cwd, 'output') }
  const result = await runCli(
    ['upload', '-q', '--retry-max-time', '0', '--server', url, ...args, '--', ...files],
    {
      cwd,
      env,
    },
  )
  const read = (name: string) => readFile(join(cwd, name), 'utf8')
  const reports = () => Promise.all(['summary.md', 'output', 'dot.env', 'junit.xml'].map(read))
  return { ...result, summary: () => read('summary.md'), reports }
}

const REPORTS = ['--github-summary', '--github-output', '--gitlab-dotenv', 'dot.env', '--junit', 'junit.xml']

const linkOf = (link: unknown) => [
  { success: true, result: [link] },
  { success: true, items: [{ index: 0, imgUrl: link }] },
]

describe('a server that is sent to', () => {
  // Which texts are no links stands in test/safe-text.test.ts.
  const AFTER_HOST = ['a.png\n::error::nothing was uploaded', 'a b.png', '<script>alert(1)</script>']
  const NO_LINKS = ['::add-mask::x', '//x/a.png', '', { toString: 'x' }, ['https://x/a.png'], 7, null]
  it.each([...AFTER_HOST.map(end => `https://x/${end}`), ...NO_LINKS])('answers with %j as a link', link => {
    for (const answer of linkOf(link)) {
      const text = JSON.stringify(answer)
      const read = () => readResponse({ status: 200, text, isCut: false }, 'x')
      expect(read).toThrow('the response of x has no valid link')
    }
  })

  it('answers with line feeds in links and messages, for a build job to obey', async () => {
    const evil =
      '\n::warning::pwned\r\n  ::stop-commands::x\n##[error]pwned ##vso[task.complete]\u001b[2J\u202e'
    const answers = [
      { success: false, message: 'x', errors: [{ index: 0, message: `::error::no${evil}`, code: evil }] },
      {
        success: true,
        items: [{ index: 0, imgUrl: `https://x/b.png${evil}`, contentType: evil, sha256: evil }],
      },
    ]
    for (const [said, answer] of [
      ['a.png: ::error::no?', answers[0]],
      [/a\.png: the response of \S+ has no valid link/, answers[1]],
    ] as const) {
      for (const format of FORMATS) {
        const { code, stdout, stderr, reports } = await sendTo(answer, ['--format', format, ...REPORTS])
        expect(code).toBe(1)
        for (const text of [stdout, stderr, ...(await reports())]) expect(text).not.toMatch(HARMFUL)
        expect(stderr).toMatch(said)
        if (!format.endsWith('json')) expect(stdout).toBe('')
      }
    }
  })

  it('answers with markup for the summary', async () => {
    const message =
      '<img src=x onerror=alert(1)> [click](https://evil.example) ![x](https://evil.example/x) `x` @all'
    const { summary } = await sendTo({ success: false, message }, ['--github-summary'])
    expect(await summary()).toMatch(
      /^\*\*❌ 0 of 1 stored, 1 failed\*\*\n\n- ❌ <code>a\.png<\/code>: <code>(?:[\w ./]|&#x[\da-f]+;)+<\/code>\n*$/,
    )
  })

  it('answers with an id that is a command', async () => {
    const finalizationId = "x'; rm -rf ~ #"
    const { code, stderr } = await sendTo({ success: false, finalizationId, message: 'no' })
    expect(code).toBe(1)
    expect(stderr).not.toContain('rm -rf')
    expect(stderr).toMatch(/^a\.png: no$/m)
  })

  const [first, second] = ['https://x/1', 'https://x/2']
  const at = (...places: [index: number, imgUrl: string][]) => ({
    items: places.map(([index, imgUrl]) => ({ index, imgUrl })),
  })
  const failed = (...places: number[]) => ({ errors: places.map(index => ({ index, message: 'no' })) })
  it.each<[string, object]>([
    ['too few links', { result: [] }],
    ['too many links', { result: [first, second] }],
    ['two links for one', at([0, first], [0, second])],
    ['a link for nobody', at([0, first], [1, second])],
    ['no object', { items: [null, 'x'] }],
    ['a link, and that it failed', { success: false, result: [first] }],
    ['a link by number, and that it failed', { success: false, ...at([0, first]) }],
    ['a link, and a failure of nobody', { result: [first], ...failed(2) }],
    ['a link and a failure', { ...at([0, first]), ...failed(0) }],
  ])('answers with %s', async (_, answer) => {
    const { code, stdout, stderr } = await sendTo({ success: true, ...answer }, [], ['a.png', 'b.png'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^a\.png and b\.png: .+\n2 of 2 files failed|^a\.png: .+\nb\.png: .+\n2 of 2 files failed/,
    )
  })

  it.each([
    ...['', 'null', '[]', '7', '"https://x/a.png"', '<html>', '{"items":{"length":1}}'],
    '{"success":true,"result":["https://x/a.png"]',
  ])('answers %j', async answer => {
    const { code, stdout, stderr } = await sendTo(answer)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^a\.png: (127\.0\.0\.1:\d+ responded with 200, which is not the response|the response has no link)/,
    )
  })

  /** Sends to a server of lines of its own. */
  async function sendBy(handle: RequestListener) {
    const { origin } = await serve(handle)
    const cwd = await makeDirectory()
    await writeFile(join(cwd, 'a.png'), 'content')
    return runCli(['upload', '--retry-max-time', '0', '--server', origin, 'a.png'], { cwd })
  }

  it('answers without an end', async () => {
    let sent = 0
    const { code, stderr } = await sendBy((_, response) => {
      const more = () => {
        for (let room = true; room && !response.destroyed; sent += 65_536)
          room = response.write(' '.repeat(65_536))
      }
      response.on('drain', more)
      more()
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^a\.png: .* is larger than 16 MiB/)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
  })

  it('breaks its answer off', async () => {
    const { code, stderr } = await sendBy((_, response) => {
      response.writeHead(200, { 'Content-Length': '100' })
      response.write('{"success":true', () => response.destroy())
    })
    expect(code).toBe(4)
    expect(stderr).toMatch(/^a\.png: \S+ can't be reached: it closed the connection\n/)
  })
})

it('a file whose name is a command of a build service is not obeyed, and can be repeated', async () => {
  const name = "::warning::a\n::error::b's \u001b[2J##[group]"
  const files = [name]
  const told = await sendTo({ success: false, message: 'no' }, [], files)
  expect(told.stderr).not.toMatch(HARMFUL)
  const [, repeat = ''] = /Try again: .* (\$'.*')$/m.exec(told.stderr) ?? []
  const cwd = await makeDirectory()
  const shown = await runShell(`bash -c 'printf %s "$0"' >/dev/null; bash -c "$SCRIPT"`, {
    cwd,
    env: { SCRIPT: `printf %s ${repeat}` },
  })
  expect(shown.stdout).toBe(name.replace('##[', '# #['))
  const fine = { success: true, result: ['https://x/a.png'] }
  for (const format of FORMATS) {
    const { stdout, stderr, reports } = await sendTo(fine, ['--format', format, ...REPORTS], files)
    for (const text of [stdout, stderr, ...(await reports())]) expect(text).not.toMatch(HARMFUL)
  }
})

it('a link of another server is whole in every format', () => {
  const link = { url: 'http://[::1]:80/a)[/img](b]c.png?d=(e)&f', name: 'a](x)<b>"c"', isImage: true }
  expect(formatLink(link, 'markdown')).toBe(
    '![a\\](x)\\<b>"c"](http://[::1]:80/a%29[/img]%28b]c.png?d=%28e%29&f)',
  )
  expect(formatLink(link, 'bbcode')).toBe('[img]http://[::1]:80/a)%5B/img%5D(b%5Dc.png?d=(e)&f[/img]')
  expect(formatLink(link, 'html')).toBe(
    '<img src="http://[::1]:80/a)[/img](b]c.png?d=(e)&amp;f" alt="a](x)&lt;b&gt;&quot;c&quot;">',
  )
})

it.each([
  ...[
    '::error::x',
    ' \t::error::x',
    '##[error]x',
    'a ##vso[task]x',
    '\u001b[2J',
    'a\n::x',
    'a\r::x',
    '\u2028::x',
  ],
])('what somebody else says is one line and no command: %j', text => {
  expect(oneLine(text)).not.toMatch(HARMFUL)
  expect(oneLine(text)).not.toContain('\n')
  expect(toJson({ text })).not.toMatch(HARMFUL)
  expect(JSON.parse(toJson({ text }))).toEqual({ text })
})

it('an error about a configuration commands nobody', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'c.json'), JSON.stringify({ 'a\n::error::x\u001b[2J': 1 }))
  const { code, stderr } = await runCli(['config', 'validate', '--config', 'c.json'], { cwd })
  expect(code).toBe(1)
  expect(stderr).not.toMatch(HARMFUL)
  const unknown = await runCli(['upload', '--a\n::error::x\u001b[2J'], { cwd })
  expect(unknown.stderr).not.toMatch(HARMFUL)
})
