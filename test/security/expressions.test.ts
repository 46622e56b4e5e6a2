import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  type Attack,
  type Expression,
  findAttacks,
  findExpressions,
  writeAttack,
} from '../helpers/expressions.ts'

const { literals, made } = findExpressions(fileURLToPath(new URL('../../src', import.meta.url)))

/**
 * Lengths of the texts, in characters. All expressions have to be quick with the last, whoever may send them what; what
 * takes for ever shows itself at the first ones.
 */
const LENGTHS = [24, 256, 2048, 16 * 1024, 64 * 1024, 256 * 1024]
const SHORT = 256
/** What the longest may take. In linear time it is a hundredth, in quadratic time a minute. */
const LIMIT_MS = 250
/** What is less at one length is little at the next. */
const SUSPICIOUS_MS = 5

/** Files that put expressions together, with what makes these harmless. */
const PUT_TOGETHER: Record<string, string> = {
  'config/destination.ts': 'only read here, to see whether they can be; foreign-expression.ts runs them',
  'config/import.ts': 'only read here, to see whether they can be; foreign-expression.ts runs them',
  'mask.ts': 'texts side by side; nothing in it repeats',
  'routes/part-header.ts': 'one sign and two digits',
  'uploader/http-host/placeholders.ts': 'foreign-expression.ts runs them, for 100 ms at most',
  'uploader/s3/presets.ts': 'sees host names of the configuration, and has a dot between its repetitions',
  'uploader/url-rewrite.ts': 'foreign-expression.ts runs them, for 100 ms at most',
}

/** The shortest of three times, since others use the processor, too. */
function timeOf(expression: RegExp, text: string): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3 && best > SUSPICIOUS_MS; i++) {
    const began = performance.now()
    text.replace(expression, '')
    best = Math.min(best, performance.now() - began)
  }
  return best
}

function isSlow(expression: RegExp, attack: Attack): boolean {
  let ms = 0
  for (const length of LENGTHS) {
    if (length > 16 * 1024 && ms < SUSPICIOUS_MS) return false
    ms = timeOf(expression, writeAttack(attack, length))
    if (ms > (length > SHORT ? LIMIT_MS : LIMIT_MS / 10)) return true
  }
  return false
}

/** The first attack that an expression takes too long with. */
function findSlow({ source, flags }: Pick<Expression, 'source' | 'flags'>): Attack | undefined {
  const expression = new RegExp(source, flags.replace(/[gy]/g, '').concat('g'))
  return findAttacks({ source, flags }).find(attack => isSlow(expression, attack))
}

describe('the attacks on expressions', () => {
  it.each([
    [/\/+$/, 'a search that begins anew at each slash'],
    [/^(a+)+$/, 'a repetition of a repetition'],
    [/^\s*\d+\s*[KM]?\s*$/, 'two repetitions of the same side by side'],
    [/<(script|style)[\s\S]*?<\/\1>/, 'a beginning without an end, over and over'],
    [/\b(?:[\w-]*-)?signature=/, 'a name that may begin at each dash'],
    [/branch.*not found/, 'a word that is looked behind each time'],
    [/文件.*已.*存在/, 'three words'],
  ])('find out %s: %s', expression => {
    expect(findSlow(expression)).toBeDefined()
  })

  it('find nothing where there is nothing', () => {
    for (const expression of [/(?<!\/)\/+$/, /^[a-z]+:\/\/([^/?#]*)(.*)$/i, /<[^<>]*>/g])
      expect(findSlow(expression)).toBeUndefined()
  })
})

describe('no regular expression of the source takes quadratic time', () => {
  const byText = new Map(literals.map(each => [`/${each.source}/${each.flags}`, each]))

  it('finds them', () => {
    expect(literals.length).toBeGreaterThan(300)
  })

  it.each([...byText])('%s', (_, expression) => {
    expect(findSlow(expression)).toBeUndefined()
  })

  it('names what is put together at run time, and nothing else', () => {
    expect([...new Set(made)].sort()).toEqual(Object.keys(PUT_TOGETHER).sort())
  })
})
