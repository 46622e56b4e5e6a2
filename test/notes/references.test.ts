import { describe, expect, it } from 'vitest'
import { findReferences } from '../../src/notes/references.ts'

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
    ["<IMG\nSRC = 'b.png' />", "'b.png'"],
    ['<div>\n<p><img src="b.png"></p>\n</div>', '"b.png"'],
    ['> <p>\n> <img\n> src="b.png">', '"b.png"'],
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
  ])('is found in %j', (note, place) => {
    expect(found(note)).toEqual([place])
  })

  it.each([
    ['![](a\\_b.png)', 'a_b.png'],
    ['![](a&amp;b.png)', 'a&b.png'],
    ['![](C:\\pictures\\a.png)', 'C:\\pictures\\a.png'],
    ['<img src="a&amp;b.png">', 'a&b.png'],
    ['![[folder/a.png#part|alt|300]]', 'folder/a.png'],
  ])('is called in %j what it names', (note, target) => {
    expect(targets(note)).toEqual([target])
  })

  it('is found with all others in their order', () => {
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
    '$\\`$ \\<img src=b.png>',
  ])('is found in %j', note => {
    expect(found(note)).toEqual([])
  })
})

describe('a note that was made to take long', () => {
  it.each([
    ['open embeds', '![['.repeat(300_000)],
    ['open tags', '<div>\n' + '<img src=a '.repeat(50_000)],
    ['front matter without end', '---\n' + '--- x\n'.repeat(100_000)],
    ['quoted HTML', '> <div>\n' + '> <img src="a.png">\n'.repeat(20_000)],
    ['footnotes in footnotes', '[^1]:'.repeat(200_000)],
    ['many footnotes', '[^1]: ![](a.png)\n'.repeat(30_000)],
    ['a picture in an address', `![](data:image/png;base64,${'A'.repeat(5_000_000)})`],
  ])('is read in a time that grows with its length: %s', { timeout: 20_000 }, (_, note) => {
    const start = performance.now()
    findReferences(note)
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})
