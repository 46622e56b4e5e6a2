import { describe, expect, it } from 'vitest'
import { claimsIn, findMisfit, isUserTemplate, matches, userOf } from '../../src/tokens/claims.ts'

describe('a pattern', () => {
  it.each([
    ['acme/site', 'acme/site', true],
    ['acme/site', 'acme/*', true],
    ['acme/site', '*/*', true],
    ['acme/site', '*', false],
    ['acme/site/x', 'acme/*', false],
    ['acme/', 'acme/*', false],
    ['acme', 'acme*', false],
    ['acme-x', 'acme*', true],
    ['refs/heads/release-1.2', 'refs/heads/release-*.*', true],
    ['refs/heads/release-1.', 'refs/heads/release-*.*', false],
    ['aXbXc', 'a*X*c', false],
    ['aXbXcXc', 'a*X*c', true],
    ['abab', '*ab', true],
    ['ab', '*ab', false],
    ['aaa', 'a**a', false],
    ['aaaa', 'a**a', true],
    ['a.c', 'a?c', false],
    ['abc', 'a.c', false],
    ['ACME', 'acme', false],
    ['', '', true],
    ['', '*', false],
  ])('%j by %j: %s', (text, pattern, fits) => {
    expect(matches(text, pattern)).toBe(fits)
  })

  it('attack: a branch name that makes a pattern with many stars try every split', () => {
    expect(matches('a-'.repeat(8000), `${'*-'.repeat(30)}x`)).toBe(false)
  })
})

describe('claims', () => {
  const payload = {
    repository: 'acme/site',
    ref_protected: 'true',
    runner_id: 42,
    'oidc.circleci.com/ssh-rerun': false,
    groups: ['dev', 'ops'],
    mixed: ['dev', { name: 'ops' }],
    kubernetes: { io: { namespace: 'ci' } },
    nothing: null,
    huge: 2 ** 60,
  }
  it.each([
    [{ repository: ['acme/other', 'acme/*'] }, true],
    [{ ref_protected: ['true'] }, true],
    [{ runner_id: ['42'] }, true],
    [{ 'oidc.circleci.com/ssh-rerun': ['false'] }, true],
    [{ groups: ['ops'] }, true],
    [{ groups: ['root'] }, false],
    [{ mixed: ['dev'] }, false],
    [{ kubernetes: ['*'] }, false],
    [{ nothing: ['null', '*'] }, false],
    [{ missing: ['*', ''] }, false],
    [{ constructor: ['*'] }, false],
    [{ huge: ['1152921504606846976'] }, false],
    [{ repository: ['acme/site'], runner_id: ['43'] }, false],
    [{}, true],
  ])('%j: %s', (required, fits) => {
    expect(findMisfit(payload, required as Record<string, string[]>) === undefined).toBe(fits)
  })

  it('the log says which claim did not fit, what it is and what was expected', () => {
    expect(findMisfit(payload, { repository: ['acme/x'] })).toBe(
      'claim "repository" is "acme/site", expected ["acme/x"]',
    )
    const long = findMisfit({ ref: 'x'.repeat(9000) }, { ref: ['main'] }) ?? ''
    expect(long.length).toBeLessThan(200)
  })
})

describe('the user name', () => {
  it.each([
    [{ repository: 'acme/site' }, '{repository}', 'acme/site'],
    [{ 'oidc.circleci.com/project-id': 'p1', n: 7 }, 'x-{oidc.circleci.com/project-id}-{n}', 'x-p1-7'],
    [{ repository: 'a' }, '{repository}-{ref}', undefined],
    [{ email: '' }, '{email}', undefined],
    [{ email: 'a\nb' }, '{email}', undefined],
    [{ email: 'a\ud800' }, '{email}', undefined],
    [{ email: 'é'.repeat(128) }, '{email}', undefined],
    [{ groups: ['a'] }, '{groups}', undefined],
    [{}, 'ci', 'ci'],
  ])('%j by %s: %s', (payload, template, user) => {
    expect(userOf(payload, template)).toBe(user)
  })

  it('a template with a brace that is not closed is invalid', () => {
    expect(['{a}', 'a', '{a}/{b}'].map(isUserTemplate)).toEqual([true, true, true])
    expect(['{a', 'a}', '{}', '{{a}}'].map(isUserTemplate)).toEqual([false, false, false, false])
    expect(claimsIn('{a}/{b c}')).toEqual(['a', 'b c'])
  })
})
