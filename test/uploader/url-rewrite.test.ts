import { expect, it } from 'vitest'
import { createUrlRewrite } from '../../src/uploader/url-rewrite.ts'

const URL_GIVEN = 'https://bucket.example/a/b.png'

it('each rule works on what the one before made of it', () => {
  const rewrite = createUrlRewrite([
    { from: '^https://bucket\\.example/(.*)$', to: 'https://cdn.example/$1' },
    { from: 'CDN', to: 'img', flags: 'i' },
    { from: '/', to: '/', flags: 'g' },
  ])
  expect(rewrite(URL_GIVEN)).toBe('https://img.example/a/b.png')
})

it.each([
  ['another scheme', { from: '^https', to: 'javascript' }],
  ['no host', { from: '//bucket.example', to: '//' }],
  ['no address', { from: '.*', to: 'x' }],
])('a rule that makes %s is left out, the next one is not', (_, rule) => {
  const rewrite = createUrlRewrite([rule, { from: 'b\\.png', to: 'c.png' }])
  expect(rewrite(URL_GIVEN)).toBe('https://bucket.example/a/c.png')
})

it('what a rule makes is percent-encoded as an address is', () => {
  expect(createUrlRewrite([{ from: 'b\\.png', to: 'ä b.png' }])(URL_GIVEN)).toBe(
    'https://bucket.example/a/%C3%A4%20b.png',
  )
})

it('attack: a URL so long that a quadratic rule would take minutes is left as it is', () => {
  const url = `https://bucket.example/${'a'.repeat(1_000_000)}!`
  expect(createUrlRewrite([{ from: '$|a+$', to: 'x' }])(url)).toBe(url)
})
