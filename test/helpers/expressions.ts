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

/** What matches a part of an expression, and what comes before it. */
type Part =
  | { kind: 'one'; samples: string[] }
  | { kind: 'sequence'; parts: Part[] }
  | { kind: 'choice'; options: Part[] }
  | { kind: 'repeat'; part: Part; least: number; endless: boolean }

/** A text that is made to match an expression nearly, at any length. */
export interface Attack {
  readonly start: string
  readonly pump: string
  readonly end: string
}

/** Writes an attack out. */
export function writeAttack({ start, pump, end }: Attack, length: number): string {
  return (
    start + pump.repeat(Math.max(1, Math.floor((length - start.length - end.length) / pump.length))) + end
  )
}

/**
 * Attacks on an expression: what each of its endless parts repeats, after what has to stand before it, and the beginning
 * of the expression over and over, so that a search begins anew everywhere; with ends that no part takes.
 */
export function findAttacks({ source, flags }: Pick<Expression, 'source' | 'flags'>): Attack[] {
  const whole = parse(source, flags)
  if (!hasEndless(whole)) return []
  const pumps = new Map<string, { start: string; pump: string }>()
  const add = (start: string, pump: string): void => {
    if (pump !== '' && pumps.size < 300) pumps.set(`${start}\0${pump}`, { start, pump })
  }
  walk(whole, '', (part, before) => {
    const samples = samplesOf(part)
    for (const sample of samples) {
      if (part.kind === 'repeat' && part.endless) {
        add(before, sample)
        for (const other of samples) if (other !== sample) add(before, sample + other)
      }
      add('', before + sample)
    }
  })
  const literals = [...new Set(source.replace(/\\[a-z]|[\w\\]/gi, ''))].slice(0, 6)
  const ends = ['', '\0', '\n', 'a', ...literals]
  return [...pumps.values()].flatMap(each => ends.map(end => ({ ...each, end })))
}

function hasEndless(part: Part): boolean {
  if (part.kind === 'repeat') return part.endless || hasEndless(part.part)
  if (part.kind === 'sequence') return part.parts.some(hasEndless)
  return part.kind === 'choice' && part.options.some(hasEndless)
}

function walk(part: Part, before: string, see: (part: Part, before: string) => void): void {
  see(part, before)
  if (part.kind === 'repeat') walk(part.part, before, see)
  if (part.kind === 'choice') for (const option of part.options) walk(option, before, see)
  if (part.kind !== 'sequence') return
  let start = before
  for (const item of part.parts) {
    walk(item, start, see)
    start += shortest(item)
  }
}

function shortest(part: Part): string {
  if (part.kind === 'repeat') return shortest(part.part).repeat(part.least)
  return samplesOf(part)[0] ?? ''
}

/** Texts that a part matches, few and short. */
function samplesOf(part: Part): string[] {
  if (part.kind === 'one') return part.samples
  if (part.kind === 'choice') return part.options.flatMap(samplesOf).slice(0, 12)
  if (part.kind === 'repeat') return samplesOf(part.part).map(text => text.repeat(Math.max(1, part.least)))
  const first = part.parts.map(item => shortest(item))
  const varied = part.parts.flatMap((item, index) =>
    samplesOf(item).map(text => [...first.slice(0, index), text, ...first.slice(index + 1)].join('')),
  )
  return [...new Set([first.join(''), ...varied])].slice(0, 12)
}

/** What classes are tried with, after the characters that the expression names. */
const PALETTE = [...'a0 \t\n-_.:/\\=;,"\'<>%!A\0é中\u202e']

/** A reader of what expressions are made of. Backreferences and assertions match nothing here. */
function parse(source: string, flags: string): Part {
  let at = 0
  const named = [...new Set([...source.replace(/\\[a-zA-Z]/g, ''), ...PALETTE])]
  const one = (text: string): Part => {
    const matches = new RegExp(`^(?:${text})$`, flags.replace(/[gy]/g, ''))
    return { kind: 'one', samples: named.filter(character => matches.test(character)).slice(0, 6) }
  }
  const take = (pattern: RegExp): string | undefined => {
    const sticky = new RegExp(pattern, 'y')
    sticky.lastIndex = at
    const text = sticky.exec(source)?.[0]
    if (text !== undefined) at += text.length
    return text
  }
  const choice = (): Part => {
    const options = [sequence()]
    while (take(/\|/)) options.push(sequence())
    return options.length === 1 ? (options[0] as Part) : { kind: 'choice', options }
  }
  const sequence = (): Part => {
    const parts: Part[] = []
    while (at < source.length && !/[|)]/.test(source[at] as string)) parts.push(quantified())
    return { kind: 'sequence', parts }
  }
  const quantified = (): Part => {
    const part = atom()
    const quantifier = take(/[*+?]\??|\{\d+(?:,\d*)?\}\??/)
    if (quantifier === undefined) return part
    const [, least = quantifier.startsWith('+') ? '1' : '0', most] = /^\{(\d+)(,\d*)?/.exec(quantifier) ?? []
    // What may come a hundred times is as good as endless.
    const endless = /^[*+]/.test(quantifier) || most === ',' || Number(most?.slice(1)) >= 100
    return { kind: 'repeat', part, least: Number(least), endless }
  }
  const nothing: Part = { kind: 'one', samples: [''] }
  const atom = (): Part => {
    if (take(/\^|\$|\\[bB]|\\[1-9]|\\k<\w+>/)) return nothing
    const group = take(/\((?:\?(?:[:=!]|<[=!]|<\w+>))?/)
    if (group !== undefined) {
      const inner = choice()
      if (take(/\)/) === undefined) throw new Error(`can't read ${source}`)
      // What is forbidden is worth trying as what a search has to look at, but stands nowhere.
      return group.endsWith('!') ? { kind: 'repeat', part: inner, least: 0, endless: false } : inner
    }
    const text =
      take(/\[(?:\\.|[^\]\\])*\]|\\u\{[^}]*\}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\[pP]\{[^}]*\}|\\./i) ??
      source[at++]
    return one(text ?? '')
  }
  return choice()
}
