import { describe, expect, it } from 'vitest'
import { findReferences } from '../../../src/client/notes/references.ts'
import { rewrite } from '../../../src/client/notes/rewrite.ts'

/** What is found, as it stands in the note. */
const found = (note: string) => findReferences(note).map(({ from, to }) => note.slice(from, to))

/** What it names. */
const targets = (note: string) => findReferences(note).map(({ target }) => target)

describe('a picture of a note', () => {
  it.each([
    ['![a](b.png)', 'b.png'],
    ['![a](<b c.png> "title")', 'b c.png'],
    ['![a](b(1).png)', 'b(1).png'],
    ['[![a](thumb.png)](large.png)', 'thumb.png'],
    ['> quoted ![a](b.png)', 'b.png'],
    ['| a | b |\n|---|---|\n| ![](b.png) | c |', 'b.png'],
    ['![a][x]\n\n[x]: b.png "title"', 'b.png'],
    ['![X\t y][]\n\n[x y]: <b c.png>', 'b c.png'],
    ['![x]\n\n[X]: b.png\n[x]: second.png', 'b.png'],
    ['<img alt=1 src=b.png>', 'b.png'],
    ["<IMG\nSRC = 'b.png' />", 'b.png'],
    ['<div>\n<p><img src="b.png"></p>\n</div>', 'b.png'],
    ['> <p>\n> <img\n> src="b.png">', 'b.png'],
    ['![[b c.png]]', '![[b c.png]]'],
    ['![[b.png|300]]', '![[b.png|300]]'],
    ['| a |\n|---|\n| ![[b.png\\|300]] |', '![[b.png\\|300]]'],
    ['---\ncover: ![](front.png)\n---\n![](b.png)', 'b.png'],
    ['+++\ncover = "![](front.png)"\n+++\n![](b.png)', 'b.png'],
    ['\ufeff---\r\na: b\r\n---\r\n![](b.png)\r\n', 'b.png'],
    ['---\n![](b.png)', 'b.png'],
    ['a\r![](b.png)\r', 'b.png'],
    ['[^1]: ![a](b.png)', 'b.png'],
    ['> [^1]:\n>     ![a](b.png)\n', 'b.png'],
    ['[^note]: ![[b.png]]\n[^x]: text', '![[b.png]]'],
    ['[^1]: <img src=b.png>', 'b.png'],
    ['[^1]: ![a][x]\n\n[x]: b.png', 'b.png'],
    ['[^1]: ![a](b.png "of two words") and more', 'b.png'],
    ['![a](b c (1).png)', 'b c (1).png'],
    ['![a]( b c.png#right "title" )', 'b c.png#right'],
    ['![a](b.png =300x200)', 'b.png'],
    ["![a](b c.png 'title' =50%)", 'b c.png'],
    ['[![a](b.png =x200)](c d.png)', 'b.png'],
    ['<picture><source srcset=b.png></picture>', 'b.png'],
    ['<img srcset="b.png">', 'b.png'],
  ])('is found in %j', (note, place) => {
    expect(found(note)).toEqual([place])
  })

  it.each([
    ['![](a\\_b.png)', 'a_b.png'],
    ['![](a&amp;b.png)', 'a&b.png'],
    ['![](C:\\pictures\\a.png)', 'C:\\pictures\\a.png'],
    ['<img src="a&amp;b.png">', 'a&b.png'],
    ['![[folder/a.png#part|alt|300]]', 'folder/a.png'],
    ['![](a b&amp;c.png)', 'a b&c.png'],
  ])('is called in %j what it names', (note, target) => {
    expect(targets(note)).toEqual([target])
  })

  it('is found with all others in their order', () => {
    expect(targets('<img srcset="1.png, 2.png 2x,3&amp;4.png 3x" src="5.png">').sort()).toEqual([
      ...['1.png', '2.png', '3&4.png', '5.png'],
    ])
    expect(targets('![[1.png]] <img src=2.png> ![][x] ![](4.png)\n\n[x]: 5.png\n')).toEqual([
      ...['1.png', '2.png', '4.png', '5.png'],
    ])
  })
})

describe('no picture', () => {
  it.each([
    '![^1]\n\n[^1]: b.png',
    '`![](b.png)`',
    '```\n![](b.png)\n```',
    '~~~md\r\n![[b.png]]\r\n~~~\r\n',
    '    ![](b.png)',
    '> ```\n> ![](b.png)\n> ```',
    '<!-- ![](b.png) <img src="b.png"> -->',
    '<div>\n<!-- <img src="b.png"> -->\n</div>',
    '<script>\n"<img src=b.png>"\n</script>',
    '\\![](b.png)',
    '[a link](b.png)',
    '[unused]: b.png',
    '![no definition]',
    '![]()',
    '<img alt="x">',
    '<image src="b.png">',
    '![[no end.png]',
    '![](two words)',
    '`![](b c.png)`',
    '![](b c.png',
    '$\\`$ \\<img src=b.png>',
  ])('is found in %j', note => {
    expect(found(note)).toEqual([])
  })
})

describe('a note that is long, or was made to take long', () => {
  it.each([
    ['open embeds', '![['.repeat(5000)],
    ['open tags', '<div>\n' + '<img src=a '.repeat(50_000)],
    ['front matter without end', '---\n' + '--- x\n'.repeat(100_000)],
    ['quoted HTML', '> <div>\n' + '> <img src="a.png">\n'.repeat(20_000)],
    ['footnotes in footnotes', '[^1]:'.repeat(10_000)],
    ['many footnotes', '[^1]: ![](a.png)\n'.repeat(5000)],
    ['spaces in paths', `![](${' '.repeat(2000)}x) `.repeat(250)],
    ['words in paths', `![](${'a '.repeat(1000)}) `.repeat(250)],
    ['titles in paths', `![](a${' "a"'.repeat(500)}x) `.repeat(250)],
    ['open parentheses', '![](a b '.repeat(10_000)],
    ['commas in srcset', `<img srcset="${'a,'.repeat(100_000)}${', '.repeat(100_000)}b">`],
    ['a picture in an address', `![](data:image/png;base64,${'A'.repeat(5_000_000)})`],
    ['a long list of links', '- [a](b.md) and [[c]]\n'.repeat(20_000)],
    ['a table of pictures', `|a|b|\n|---|---|\n${'| ![](a.png) | ![](b.png) |\n'.repeat(4000)}`],
    ['quotes of quotes', `${'> '.repeat(20)}text\n`],
  ])('is read in a time that grows with its length: %s', { timeout: 60_000 }, (_, note) => {
    expect(() => findReferences(note)).not.toThrow()
  })
})

describe('whatever the note and the name of the file, only the bytes of the name change', () => {
  const URL = 'https://img.example/1.png'
  const SIGNS = [...'aB1 ()&;#?\'"-_.*[ä🙂\u0301=/', '%20']
  const NOISE = [
    '',
    '\ufeff',
    '# ä\r\n\r\n',
    'text\t  ',
    '\u00a0',
    '"q" \'q\' ',
    '<b>b</b> ',
    '> ',
    '\n\n\n',
    '&amp; ',
  ]
  const WAYS: Readonly<Record<string, (name: string) => readonly [string, string, string]>> = {
    'in angle brackets': name => ['![x](<', name.trim(), "> 't')"],
    'in single quotes': name => [
      "<img alt=1  SRC = '",
      name.replace(/&/g, '&amp;').replace(/'/g, '&#39;'),
      "' width='3'>",
    ],
    'in double quotes': name => ['<IMG src="', name.replace(/&/g, '&amp;').replace(/"/g, '&quot;'), '"\t/>'],
    'without quotes': name => ['<img src=', name.replace(/[\s"'=&/]/g, '_'), ' width=3>'],
  }
  it.each(Object.keys(WAYS))('%s', way => {
    let seed = 7
    const pick = <T>(list: readonly T[]): T => {
      seed = (seed * 48_271) % 2_147_483_647
      return list[seed % list.length] as T
    }
    for (let turn = 0; turn < 300; turn++) {
      const name = `x${Array.from({ length: 1 + (turn % 9) }, () => pick(SIGNS)).join('')}.png`
      const [begin, written, end] = WAYS[way]?.(name) ?? ['', '', '']
      const [before, after] = [pick(NOISE), pick(NOISE)]
      const note = `${before}${begin}${written}${end}${after}`
      const links = findReferences(note).map(reference => ({ reference, url: URL }))
      expect(rewrite(note, links), note).toBe(`${before}${begin}${URL}${end}${after}`)
    }
  })

  it('a link that no value without quotes can hold gets some', () => {
    const links = (note: string, url: string) =>
      rewrite(
        note,
        findReferences(note).map(reference => ({ reference, url })),
      )
    expect(links('<img src=a.png>', 'https://x/?a=b')).toBe('<img src="https://x/?a=b">')
    expect(links('<img src=a.png/>', 'https://x/')).toBe('<img src="https://x/">')
  })
})

it.each([
  ['brackets', '![a]('.repeat(200_000), 'it has a paragraph with more than 10000 brackets'],
  ['brackets in many paragraphs', `${'[a]('.repeat(1500)}\n\n`.repeat(200), 'more than 10000 brackets'],
  ['lists in lists', '1. '.repeat(200_000), 'a line has more than 100 nested quotes or lists'],
  ['quotes in quotes', '> '.repeat(200_000), 'a line has more than 100 nested quotes or lists'],
])('attack: a note over which the parser would sit for minutes, with %s, is refused', (_, note, reason) => {
  expect(() => findReferences(note)).toThrow(reason)
})
