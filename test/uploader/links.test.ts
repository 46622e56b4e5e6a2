import { describe, expect, it } from 'vitest'
import type { Target } from '../../src/providers/contract.ts'
import type { HistoryEntry } from '../../src/store/contract.ts'
import type { Destination } from '../../src/uploader/destinations.ts'
import { keptUrl, keptUrlAgain, linkOf } from '../../src/uploader/links.ts'

const BASE = 'https://up.example/below/'
const STORED = { url: 'https://img.example/a.png' }
const { signal } = new AbortController()

const at = (change: Partial<Omit<Destination, 'target'>> & { target?: Partial<Target> } = {}) =>
  ({
    type: 's3',
    name: 'my shots',
    id: 's3/my shots',
    rewriteUrl: (url: string) => url,
    target: {},
    ...change,
  }) as Destination

describe('the link to what was stored', () => {
  it.each([
    ['is the address of the destination', at(), STORED, STORED.url, STORED.url],
    [
      'begins where this server is reached, if it hands it out',
      at(),
      { url: 'files/a/b%20c.png' },
      'files/a/b%20c.png',
      `${BASE}files/a/b%20c.png`,
    ],
    [
      'leads here where this server sends on',
      at({ redirects: 'anyone' }),
      STORED,
      'links/s3/my%20shots/x/a%23b.png',
      `${BASE}links/s3/my%20shots/x/a%23b.png`,
    ],
    ['is rewritten once', at({ rewriteUrl: url => `${url}!` }), STORED, `${STORED.url}!`, `${STORED.url}!`],
    [
      'is rewritten at the end',
      at({ rewriteUrl: url => `${url}!` }),
      { url: 'files/a' },
      'files/a',
      `${BASE}files/a!`,
    ],
  ])('%s', (_, destination, stored, kept, link) => {
    expect(keptUrl(destination, 'x/a#b.png', stored)).toBe(kept)
    expect(linkOf('s3/my shots', kept, BASE, [destination])).toBe(link)
  })
})

describe('the link to what the history knows', () => {
  const entry = { key: 'x/a.png', url: 'https://img.example/then' } as HistoryEntry
  const asked: unknown[] = []
  const sign: Target['sign'] = async (...words) => {
    asked.push(words.slice(0, 3))
    return { url: 'https://img.example/signed', forS: 60 }
  }

  it.each([
    ['is the one from then', at({ target: { sign } }), 0, entry.url],
    [
      'is a new one where links end',
      at({ target: { sign, traits: { linksExpire: true } } }),
      1,
      'https://img.example/signed',
    ],
    [
      'is the one from then where links end and nothing is signed',
      at({ target: { traits: { linksExpire: true } } }),
      0,
      entry.url,
    ],
    [
      'leads here where this server sends on',
      at({ target: { sign }, redirects: 'callers' }),
      0,
      'links/s3/my%20shots/x/a.png',
    ],
  ])('%s', async (_, destination, times, link) => {
    asked.length = 0
    expect(await keptUrlAgain(destination, entry, signal)).toBe(link)
    expect(asked).toEqual(Array(times).fill(['x/a.png', 'GET', Number.POSITIVE_INFINITY]))
  })
})
