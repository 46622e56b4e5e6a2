import { describe, expect, it } from 'vitest'
import { baseName, cleanFileName, splitExtension } from '../../src/payload/file-name.ts'

describe('baseName', () => {
  it.each([
    ['a.png', 'a.png'],
    ['/home/me/a.png', 'a.png'],
    ['C:\\Users\\me\\a.png', 'a.png'],
    ['C:/Users\\me/a.png', 'a.png'],
    ['a/b\\', ''],
    ['/', ''],
    ['', ''],
  ])('of %j is %j', (name, last) => {
    expect(baseName(name)).toBe(last)
  })
})

describe('cleanFileName', () => {
  it.each([
    ['a.png', 'a.png'],
    ['日本 語.png', '日本 語.png'],
    ['😀.gif', '😀.gif'],
    ['a.tar.gz', 'a.tar.gz'],
    ["it's (1) 100% #?.png", "it's (1) 100% #_.png"],
    ['  a.png  ', 'a.png'],
    ['a', 'a.bin'],
    ['', 'file.bin'],
    ['   ', 'file.bin'],
    ['/path/to/', 'file.bin'],
    ['C:\\dir\\b.png', 'b.png'],
    ['.htaccess', '_.htaccess.bin'],
    ['e\u0301.png', 'é.png'],
  ])('makes %j into %j', (name, clean) => {
    expect(cleanFileName(name, '.bin')).toBe(clean)
  })

  it.each([
    ['a\u0000b.png', 'a_b.png'],
    ['a\r\nb.png', 'a__b.png'],
    ['a<b>c:d"e|f?g*h.png', 'a_b_c_d_e_f_g_h.png'],
    ['a\u007f\u0085b.png', 'a__b.png'],
    ['gpj.\u202eexe', 'gpj._exe'],
    ['a\u200bb\ufeffc.png', 'a_b_c.png'],
    ['a\ud800b.png', 'a\ufffdb.png'],
  ])('makes characters that no disk takes, or that hide text, into "_": %j', (name, clean) => {
    expect(cleanFileName(name, '')).toBe(clean)
  })

  it.each([
    ['.', '_.'],
    ['..', '_..'],
    ['../..', '_..'],
    ['con', '_con'],
    ['CON.png', '_CON.png'],
    ['nul.tar.gz', '_nul.tar.gz'],
    ['COM1', '_COM1'],
    ['lpt².txt', '_lpt².txt'],
    ['console.png', 'console.png'],
    ['com10.txt', 'com10.txt'],
    ['.htaccess', '_.htaccess'],
    ['...x', '_...x'],
  ])('puts "_" in front of the reserved or hidden name %j', (name, clean) => {
    expect(cleanFileName(name, '')).toBe(clean)
  })

  it.each([
    ['a.', 'a_'],
    ['a. .', 'a___'],
    ['a...', 'a___'],
    ['CON.', 'CON_'],
  ])('keeps Windows from dropping the end of %j', (name, clean) => {
    expect(cleanFileName(name, '')).toBe(clean)
  })

  it.each([
    [`${'a'.repeat(300)}.png`, `${'a'.repeat(196)}.png`],
    [`${'é'.repeat(150)}.png`, `${'é'.repeat(98)}.png`],
    [`${'日'.repeat(100)}.png`, `${'日'.repeat(65)}.png`],
    [`${'😀'.repeat(60)}.png`, `${'😀'.repeat(49)}.png`],
    ['a'.repeat(300), 'a'.repeat(200)],
    [`a.${'b'.repeat(300)}`, `a.${'b'.repeat(198)}`],
    [`${'a'.repeat(199)}.${'b'.repeat(99)}`, `${'a'.repeat(199)}_`],
    [`${'a'.repeat(195)} b.png`, `${'a'.repeat(195)}.png`],
  ])('cuts a name of more than 200 bytes before its extension (%#)', (name, clean) => {
    expect(cleanFileName(name, '')).toBe(clean)
    expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(200)
  })
})

describe('splitExtension', () => {
  it.each([
    ['a.png', 'a', '.png'],
    ['a.tar.gz', 'a.tar', '.gz'],
    ['a', 'a', ''],
    ['.profile', '.profile', ''],
    ['a.', 'a.', ''],
    ['end of sentence. And more', 'end of sentence. And more', ''],
    ['a.averyveryverylongtail', 'a.averyveryverylongtail', ''],
    ['', '', ''],
  ])('%j is %j and %j', (name, base, extension) => {
    expect(splitExtension(name)).toEqual([base, extension])
  })
})
