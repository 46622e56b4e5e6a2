import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openReports, writeReports } from '../src/client/reports/reports.ts'
import { type Format, formatLink } from '../src/page/links.ts'
import { cleanLink, isLink, oneLine, toMarkdown, toMarkdownCode, toXml } from '../src/safe-text.ts'
import { makeDirectory } from './helpers/directory.ts'

/** Behind `https://x/`, what parses as an address and is more than that in some text. */
const HOSTILE = [
  ...['a\n\n/merge', 'a\r\nUPLOAD_URL=evil', 'a <h1>b</h1>', '"onerror="alert(1)', "'onerror='alert(1)"],
  ...['a\r::error::x', 'a\u2028::error::x', 'a b.png', '<script>alert(1)</script>', '\\..\\a'],
  ...['`a`|b', '\u202egnp.a', '\u2028b\u200b\ufeff', '\u001b[31mred\u009b0m', '#{a}\\b^'],
]

const SAFE: Readonly<Record<Format, RegExp>> = {
  url: /^https:\/\/x\/[^\s"'<>`|\\]+$/,
  markdown: /^!\[a\]\(https:\/\/x\/[^\s"'<>`|\\()]+\)$/,
  html: /^<img src="https:\/\/x\/[^\s"'<>]+" alt="a">$/,
  bbcode: /^\[img\]https:\/\/x\/[^\s"'<>[\]]+\[\/img\]$/,
}

describe.each(HOSTILE)('attack: a link with %j in it', end => {
  const url = `https://x/${end}`

  it('is none, and is one harmless word wherever it is written all the same', () => {
    expect(URL.canParse(url)).toBe(true)
    expect(isLink(url)).toBe(false)
    expect(isLink(cleanLink(url))).toBe(true)
    expect(cleanLink(cleanLink(url))).toBe(cleanLink(url))
    for (const [format, safe] of Object.entries(SAFE)) {
      const text = formatLink({ url, name: 'a', isImage: true }, format as Format)
      expect(text).toMatch(safe)
      expect(text).toMatch(/^[\x20-\x7e]+$/)
    }
  })

  it('adds no line to a report', async () => {
    const linesWith = async (link: string) => {
      const cwd = await makeDirectory()
      const env = { GITHUB_OUTPUT: join(cwd, 'o'), GITHUB_STEP_SUMMARY: join(cwd, 's') }
      const wanted = { githubOutput: true, githubSummary: true, gitlabDotenv: 'e', junit: 'j' }
      const reports = await openReports(wanted, { cwd, env })
      await writeReports(reports, [{ name: 'a', url: link, contentType: 'image/png' }], 1)
      const texts = await Promise.all(['o', 's', 'e', 'j'].map(file => readFile(join(cwd, file), 'utf8')))
      return texts.map(text => text.split(/[\n\u2028]/).length)
    }
    expect(await linesWith(url)).toEqual(await linesWith('https://x/a'))
  })
})

it('links as providers give them stay what they are', () => {
  for (const url of [
    'https://x/a.png',
    'http://[::1]:80/%E7%8C%AB.png?a=b&c#d',
    'https://u:p@x/a(1)!*~,;@$+.png',
  ]) {
    expect(isLink(url)).toBe(true)
    expect(cleanLink(url)).toBe(url)
  }
  const others = [
    ...[
      undefined,
      null,
      7,
      '',
      'a.png',
      '/a.png',
      '//x/a.png',
      'ftp://x/a',
      'javascript:alert(1)//https://x/',
    ],
    ...['https://', 'https://a:99999/', 'data:text/html,x', 'file:///etc/passwd', '::add-mask::x'],
  ]
  for (const other of [...others, `https://x/${'a'.repeat(9000)}`]) expect(isLink(other)).toBe(false)
})

describe('attack: what a forge would make a link of', () => {
  it.each([
    ...[
      'www.evil.example',
      'https://evil.example',
      '#1',
      'o/r#1',
      'GH-1',
      '!1',
      '@user',
      'me@x.example',
      '%1',
    ],
    ...['~bug', '&1', 'deadbeef01', ':tada:', '[[page]]', 'a_b_c', '<!--', '/merge'],
  ])('%s in a name or a failure is code', text => {
    for (const written of [toMarkdownCode(`a ${text}`), toMarkdown(`a ${text}`)]) {
      expect(written).toMatch(/^<code>(?:[\p{L}\p{N} ./-]|&#x[\da-f]+;(?:<!-- -->)?)*<\/code>$/u)
      expect(written).not.toMatch(/www\./i)
    }
  })

  it.each(['icon@2x.png', 'a_b+c@x.de'])(
    '%s is not the text of a mailto link in a comment on GitHub',
    name => {
      expect(toMarkdownCode(name)).toMatch(/^<code>[^@]+&#x40;<!-- -->[^@]+<\/code>$/)
    },
  )

  it('words stay words', () => {
    expect(toMarkdown('Pictures (chromium, dark): part two.')).toBe('Pictures (chromium, dark): part two.')
  })
})

it('attack: a name is one line in every text, and moves no cursor', () => {
  const name = 'a\n::error::\u001b[2J\u202e\t\u2028</b>&"\ufffe\ud800.png'
  for (const text of [
    oneLine(name),
    toXml(name),
    toMarkdownCode(name),
    formatLink({ url: 'https://x/a', name, isImage: true }, 'markdown'),
  ])
    expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028]|^::/u)
  expect(toXml(name)).toMatch(/&lt;\/b&gt;&amp;&quot;\?\ufffd\.png$/)
})
