import { describe, expect, it } from 'vitest'
import { assertMayExpire, type Expires, type ExpiryRule, expiresAt } from '../../src/uploader/expiry.ts'

const NOW = 1_000_000_000
const HOUR = 60 * 60 * 1000

const at = (expiry?: ExpiryRule) => ({ id: 's3/shots', expiry })

describe('what a request may ask for', () => {
  it.each<[string, ExpiryRule, Expires]>([
    ['any time, where nothing is the most', {}, { afterMs: 1e6 * HOUR }],
    ['never, where nothing is the most', {}, 'never'],
    ['less than the most', { max: 2 * HOUR }, { afterMs: HOUR }],
    ['the most itself', { max: 2 * HOUR }, { afterMs: 2 * HOUR }],
    ['a moment up to the most', { max: 2 * HOUR }, { at: NOW + 2 * HOUR }],
    ['more than what holds by default', { default: HOUR }, { afterMs: 2 * HOUR }],
  ])('%s', (_, rule, wish) => {
    expect(() => assertMayExpire(wish, at(rule), NOW)).not.toThrow()
  })

  it.each<[string, ExpiryRule | undefined, Expires, string, string]>([
    ['a destination without expiry', undefined, { afterMs: HOUR }, 'expiry_forbidden', 'Files at s3/shots'],
    ['never, too, at one without expiry', undefined, 'never', 'expiry_forbidden', 'Files at s3/shots'],
    ['more than the most', { max: 48 * HOUR }, { afterMs: 48 * HOUR + 1 }, 'expiry_forbidden', 'is 2d.'],
    ['never beside a most', { max: 90 * 60_000 }, 'never', 'expiry_forbidden', 'is 90m.'],
    ['a moment behind the most', { max: HOUR }, { at: NOW + HOUR + 1 }, 'expiry_forbidden', 'is 1h.'],
    ['this very moment', {}, { at: NOW }, 'invalid_request', 'in the past'],
    [
      'a moment that has passed, whatever the most',
      { max: HOUR },
      { at: 1 },
      'invalid_request',
      'in the past',
    ],
  ])('is not granted: %s', (_, rule, wish, code, words) => {
    expect(() => assertMayExpire(wish, at(rule), NOW)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(words) }),
    )
  })
})

it.each<[string, ExpiryRule | undefined, Expires | undefined, number | undefined]>([
  ['stays where nothing expires', undefined, undefined, undefined],
  ['stays where nothing expires, whatever was wished', undefined, { afterMs: 1 }, undefined],
  ['stays where only requests say when', {}, undefined, undefined],
  ['goes by default', { default: HOUR, max: 2 * HOUR }, undefined, NOW + HOUR],
  ['stays by default', { default: 'never' }, undefined, undefined],
  ['goes at the most where there is no default', { max: 2 * HOUR }, undefined, NOW + 2 * HOUR],
  ['goes when the request says', { default: HOUR }, { afterMs: 5 }, NOW + 5],
  ['goes at the moment of the request', { default: HOUR }, { at: NOW + 7 }, NOW + 7],
  ['stays when the request says', { default: HOUR }, 'never', undefined],
])('a file %s', (_, rule, wish, end) => {
  expect(expiresAt({ expiry: rule }, wish, NOW)).toBe(end)
})
