import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/** A regular expression of the source. */
export interface Expression {
  /** The file, below `src`. */
  readonly file: string
  readonly source: string
  readonly flags: string
}

/** Every expression written as a literal below a folder. `made` gets the files that put expressions together. */
export function findExpressions(folder: string): { literals: Expression[]; made: string[] } {
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

export interface Attack {
  readonly start: string
  readonly pump: string
}

/** Writes an attack out, with an end that nothing matches. */
export function writeAttack({ start, pump }: Attack, length: number): string {
  return `${start}${pump.repeat(Math.ceil(length / pump.length))}\0`
}

/** What many classes of characters match. */
const COMMON = ['a', 'A', '0', ' ', '-', '/', '.', ':', '"', '\n', 'a ', 'a-', 'a.', 'a=', '图']

/** Texts that repeat a word or a sign of the expression, or what is common, from the beginning or behind what may begin it. */
export function findAttacks({ source }: Pick<Expression, 'source'>): Attack[] {
  const pieces = source.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}\s\\()[\]?*+|^$]/gu) ?? []
  const pairs = pieces.map((piece, index) => piece + (pieces[index + 1] ?? ''))
  const pumps = new Set([...COMMON, ...pieces, ...pairs, ...pieces.map(piece => `${piece} `)])
  const starts = new Set(['', 'a', '0', pieces.find(piece => /\p{L}/u.test(piece)) ?? ''])
  return [...starts].flatMap(start => [...pumps].map(pump => ({ start, pump })))
}
