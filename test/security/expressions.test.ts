import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, it } from 'vitest'

/** A regular expression of the source. */
interface Expression {
  /** The file, below `src`. */
  readonly file: string
  readonly source: string
  readonly flags: string
}

/** Every expression written as a literal below a folder. `made` gets the files that put expressions together. */
function findExpressions(folder: string): { literals: Expression[]; made: string[] } {
  const literals: Expression[] = []
  const made: string[] = []
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.ts'),
  )
  for (const file of names.sort()) {
    visit(parseAst(readFileSync(join(folder, file), 'utf8'), { lang: 'ts' }), node => {
      if (node['regex']) {
        const { pattern, flags } = node['regex'] as { pattern: string; flags: string }
        literals.push({ file, source: pattern, flags })
      }
      const callee = node['callee'] as { name?: string } | undefined
      if (callee?.name === 'RegExp') made.push(file)
    })
  }
  return { literals, made }
}

function visit(node: unknown, see: (node: Record<string, unknown>) => void): void {
  if (typeof node !== 'object' || node === null) return
  if (!Array.isArray(node)) see(node as Record<string, unknown>)
  for (const member of Object.values(node)) visit(member, see)
}

interface Attack {
  readonly start: string
  readonly pump: string
}

/** Writes an attack out, with an end that nothing matches. */
function writeAttack({ start, pump }: Attack, length: number): string {
  return `${start}${pump.repeat(Math.ceil(length / pump.length))}\0`
}

/** What many classes of characters match. */
const COMMON = ['a', 'A', '0', ' ', '-', '/', '.', ':', '"', '\n', 'a ', 'a-', 'a.', 'a=', '图']

/** Texts that repeat a word or a sign of the expression, or what is common, from the beginning or behind what may begin it. */
function findAttacks({ source }: Pick<Expression, 'source'>): Attack[] {
  const pieces = source.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}\s\\()[\]?*+|^$]/gu) ?? []
  const pairs = pieces.map((piece, index) => piece + (pieces[index + 1] ?? ''))
  const pumps = new Set([...COMMON, ...pieces, ...pairs, ...pieces.map(piece => `${piece} `)])
  const starts = new Set(['', 'a', '0', pieces.find(piece => /\p{L}/u.test(piece)) ?? ''])
  return [...starts].flatMap(start => [...pumps].map(pump => ({ start, pump })))
}

const { literals, made } = findExpressions('src')

/**
 * Lengths of the texts, in characters, with the milliseconds of processor time above which an expression may be slow, and
 * those below which longer texts need not be tried. What takes quadratic time and is not quick at one length is slow at
 * the next, so that it costs little to find.
 */
const STEPS = [
  { length: 24, slow: 25, quick: 0 },
  { length: 256, slow: 25, quick: 0 },
  { length: 2048, slow: 25, quick: 0.08 },
  { length: 16 * 1024, slow: 25, quick: 5 },
  { length: 64 * 1024, slow: 100, quick: 5 },
  { length: 256 * 1024, slow: 250, quick: 250 },
]

/** Files that put expressions together, with what makes these harmless. */
const PUT_TOGETHER: Record<string, string> = {
  'cli/program.ts': 'breaks the lines of the help, which is our own text',
  'client/notes/references.ts': 'begins at the beginning of a line, and each part has a sign of its own',
  'config/destination.ts': 'only read here, to see whether they can be; url-rewrite.ts runs them',
  'mask.ts': 'texts side by side; nothing in it repeats',
  'payload/extensions.ts': 'extensions side by side, as a list',
  'routes/loopback.ts': 'names of headers side by side; nothing in it repeats',
  'routes/part-header.ts': 'one sign and two digits',
  'providers/http/placeholders.ts': 'those of the operator, on texts of at most 64 K characters',
  'providers/sftp/host-keys.ts': 'patterns of the operator, on one hostname',
  'providers/shared/git-host/failure.ts': 'one expression behind "409" or without it',
  'providers/s3/presets.ts': 'sees host names of the configuration, and has a dot between its repetitions',
  'uploader/url-rewrite.ts': 'those of the operator, on URLs of at most 8 K characters',
}

/** Processor time, ms, which others on a busy machine do not add to. The best of three when it is long: V8 may have tidied up. */
function timeOf(expression: RegExp, text: string, slow: number): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3 && best > slow; i++) {
    const before = process.cpuUsage()
    text.replace(expression, '')
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}

/** Linear time grows as the text does, on a slow machine too; quadratic time at least four times as much. */
function isSlow(expression: RegExp, attack: Attack): boolean {
  let before = { length: 1, ms: 0 }
  for (const { length, slow, quick } of STEPS) {
    const ms = timeOf(expression, writeAttack(attack, length), slow)
    if (ms > slow && ms / before.ms > (1.5 * length) / before.length) return true
    if (ms < quick) return false
    before = { length, ms }
  }
  return false
}

/** The first attack that an expression takes too long with. */
function findSlow({ source, flags }: Pick<Expression, 'source' | 'flags'>): Attack | undefined {
  const expression = new RegExp(source, flags.replace(/[gy]/g, '').concat('g'))
  return findAttacks({ source }).find(attack => isSlow(expression, attack))
}

describe('the attacks on expressions', { timeout: 120_000 }, () => {
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

describe('no regular expression of the source takes quadratic time', { timeout: 120_000 }, () => {
  const byText = new Map(literals.map(each => [`/${each.source}/${each.flags}`, each]))

  it('finds them', () => {
    expect(literals.length).toBeGreaterThan(300)
  })

  // Without a repetition, the time for a place in the text does not depend on the text.
  it.each([...byText].filter(([text]) => /[*+]|,\}/.test(text)))('%s', (_, expression) => {
    expect(findSlow(expression)).toBeUndefined()
  })

  it('names what is put together at run time, and nothing else', () => {
    expect([...new Set(made)].sort()).toEqual(Object.keys(PUT_TOGETHER).sort())
  })
})
