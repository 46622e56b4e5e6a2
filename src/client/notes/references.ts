import type { SyntaxNode } from '@lezer/common'
import { type MarkdownConfig, parser, Table } from '@lezer/markdown'
import { decodeHTMLStrict } from 'entities'
import { endOfFrontMatter } from './front-matter.ts'
import { findHtmlImages } from './html-images.ts'

/**
 * A reference to an image in a note: the URL of an image or of a link definition that an image uses, a URL in `src` or
 * `srcset` between its quotes or, as `bare`, without quotes, or a whole wiki embed.
 */
export interface Reference {
  readonly kind: 'address' | 'attribute' | 'bare' | 'embed'
  /** Position in the text of the note, UTF-16 code units. */
  readonly from: number
  readonly to: number
  /** The decoded target. */
  readonly target: string
  /** The target as written, because the backslashes of a Windows path are not escapes. */
  readonly written?: string
  /** Line number, from 1. */
  readonly line: number
}

/** A reference in a part of a note. */
type Found = Omit<Reference, 'line'>

/** Maximum length of an embed, characters. Without a limit, parsing would take quadratic time. */
const LONGEST_EMBED = 2048

/** `![[image.png|300]]`, as Obsidian and others have it. */
const wikiEmbeds: MarkdownConfig = {
  defineNodes: ['WikiEmbed'],
  parseInline: [
    {
      name: 'WikiEmbed',
      before: 'Image',
      parse(context, next, from) {
        if (next !== 0x21 || context.slice(from, from + 3) !== '![[') return -1
        const text = context.slice(from + 3, Math.min(context.end, from + LONGEST_EMBED))
        const name = /^[^[\]\n]+(?=\]\])/.exec(text)?.[0]
        if (name === undefined) return -1
        return context.addElement(context.elt('WikiEmbed', from, from + 3 + name.length + 2))
      },
    },
  ],
}

/** `![alt](…)` on one line, with parentheses in it only in pairs. */
const LOOSE_IMAGE = /^!\[(?:[^[\]\\\n]|\\.)*\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)/
/** A title behind a path, or a size, which some editors write there. */
const BEHIND_PATH = /(?<![ \t])[ \t]+(?:"[^"]*"|'[^']*'|=(?:\d+%?x\d*%?|x\d+%?|\d+%))$/
/** The end of a path with the extension of a file, or that and a fragment. */
const FILE_END = /\.\w{2,4}(?:[#?][^\s#?]*)?$/

/** `![](my photo.png)` and `![](a.png =300x200)`, which CommonMark takes for text, and many editors for images. */
const looseImages: MarkdownConfig = {
  defineNodes: ['LooseImage'],
  parseInline: [
    {
      name: 'LooseImage',
      before: 'Image',
      parse(context, next, from) {
        if (next !== 0x21) return -1
        const text = context.slice(from, Math.min(context.end, from + LONGEST_EMBED))
        const [image = '', inside = ''] = LOOSE_IMAGE.exec(text) ?? []
        const whole = inside.trim()
        let path = whole
        while (BEHIND_PATH.test(path)) path = path.replace(BEHIND_PATH, '')
        const isLoose = /[ \t]/.test(path) ? FILE_END.test(path) : /[ \t]=/.test(whole.slice(path.length))
        if (!isLoose || path === '' || path.startsWith('<')) return -1
        const start = from + image.length - 1 - inside.trimStart().length
        const url = context.elt('URL', start, start + path.length)
        return context.addElement(context.elt('LooseImage', from, from + image.length, [url]))
      },
    },
  ],
}

const markdown = parser.configure([Table, wikiEmbeds, looseImages])

/**
 * The parser takes time that grows with the square of the brackets in a paragraph, and of the quotes and lists that are nested in
 * a line. At these limits, it takes a few seconds; a malicious note without limits, hours.
 */
const [MOST_BRACKETS, DEEPEST] = [10_000, 100]

const TOO_DEEP = new RegExp(`^(?:[ \\t]*(?:>|[-+*](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${DEEPEST + 1}}`, 'm')

/** @throws Error if a text is within no limits that a note written by people has */
function assertParsable(text: string): void {
  let cost = 0
  for (const paragraph of text.split(/\n[ \t]*\n|\n(?= {0,3}[-*+] +\S)/)) {
    let brackets = 0
    for (let at = paragraph.indexOf('['); at !== -1; at = paragraph.indexOf('[', at + 1)) brackets++
    cost += brackets ** 2
  }
  if (cost > MOST_BRACKETS ** 2)
    throw new Error(`it has a paragraph with more than ${MOST_BRACKETS} brackets`)
  if (TOO_DEEP.test(text)) throw new Error(`a line has more than ${DEEPEST} nested quotes or lists`)
}

/**
 * Finds the references to images, in order. Front matter, code and comments are skipped.
 *
 * @throws Error if parsing would take too long
 */
export function findReferences(note: string): Reference[] {
  const start = endOfFrontMatter(note)
  // Replaces line endings that the parser does not know, and keeps all positions.
  const text = note.slice(start).replace(/\r\n/g, ' \n').replace(/\r/g, '\n')
  assertParsable(text)
  const names: Names = { found: [], definitions: new Map(), used: new Set() }
  scan(text, names)
  const definitions = [...names.definitions].filter(([label]) => names.used.has(label))
  let [line, at] = [1, 0]
  return [...names.found, ...definitions.map(([, definition]) => definition)]
    .map(one => move(one, start))
    .sort((a, b) => a.from - b.from)
    .map(one => {
      line += note.slice(at, one.from).split('\n').length - 1
      at = one.from
      return { ...one, line }
    })
}

interface Names {
  readonly found: Found[]
  /** By their normalized labels. */
  readonly definitions: Map<string, Found>
  /** Labels that images use. */
  readonly used: Set<string>
}

/** @param isFootnote whether the text is that of a footnote; footnotes inside it are skipped */
function scan(text: string, names: Names, isFootnote = false): void {
  const { found, definitions, used } = names
  markdown.parse(text).iterate({
    enter({ name, node }) {
      if (name === 'WikiEmbed') found.push(readEmbed(node, text))
      else if (name === 'HTMLTag' || name === 'HTMLBlock') found.push(...readHtml(node, text))
      else if (name === 'Image' || name === 'LooseImage') {
        const address = readAddress(node, text)
        if (address) found.push(address)
        else used.add(labelOfImage(node, text))
      } else if (name === 'LinkReference') {
        const label = node.getChild('LinkLabel')
        const key = normalize(label ? text.slice(label.from + 1, label.to - 1) : '')
        const address = readAddress(node, text)
        if (label && key.startsWith('^')) {
          if (!isFootnote) scanFootnote(text.slice(0, node.to), label.to + 1, names)
        } else if (address && !definitions.has(key)) definitions.set(key, address)
      }
    },
  })
}

/** A footnote of one word, `[^1]: ![](a.png)`, looks like a definition to CommonMark, and its text like an address. */
function scanFootnote(text: string, start: number, { found, used }: Names): void {
  // In a blockquote, each line begins with its marker.
  const own = text.slice(start).replace(/^[\s>]+/, '')
  const inside: Names = { found: [], definitions: new Map(), used }
  scan(own, inside, true)
  found.push(...inside.found.map(one => move(one, text.length - own.length)))
}

const move = (one: Found, by: number): Found => ({ ...one, from: one.from + by, to: one.to + by })

function readAddress(node: SyntaxNode, text: string): Found | undefined {
  const address = node.getChild('URL')
  if (!address) return undefined
  const isBracketed = text[address.from] === '<'
  const [from, to] = isBracketed ? [address.from + 1, address.to - 1] : [address.from, address.to]
  const written = text.slice(from, to)
  return from < to ? { kind: 'address', from, to, target: decode(written), written } : undefined
}

/** Decodes the escapes and character references of Markdown. */
function decode(written: string): string {
  return written.replace(
    /\\([!-/:-@[-`{-~])|&#?\w{1,32};/g,
    (all, escaped?: string) => escaped ?? decodeHTMLStrict(all),
  )
}

function labelOfImage(node: SyntaxNode, text: string): string {
  const label = node.getChild('LinkLabel')
  if (label && label.to - label.from > 2) return normalize(text.slice(label.from + 1, label.to - 1))
  const [, end] = node.getChildren('LinkMark')
  return normalize(text.slice(node.from + 2, end?.from ?? node.to))
}

/** Labels are compared without case and with single spaces. */
const normalize = (label: string) => label.trim().replace(/\s+/g, ' ').toLowerCase().toUpperCase()

/** Finds the images of HTML. In a blockquote, the marker before each line is not part of the HTML. */
function readHtml(node: SyntaxNode, text: string): Found[] {
  const pieces: string[] = []
  let at = node.from
  for (const mark of node.getChildren('QuoteMark')) {
    pieces.push(text.slice(at, mark.from), ' '.repeat(mark.to - mark.from))
    at = mark.to
  }
  const html = pieces.join('') + text.slice(at, node.to)
  return findHtmlImages(html).map(one => ({
    kind: one.isBare ? 'bare' : 'attribute',
    from: node.from + one.from,
    to: node.from + one.to,
    target: one.target,
  }))
}

/** Reads `image.png#part|alt|300`. In tables, the vertical bar is escaped. */
function readEmbed({ from, to }: SyntaxNode, text: string): Found {
  const [target = ''] = text.slice(from + 3, to - 2).split(/\\?\|/)
  return { kind: 'embed', from, to, target: target.replace(/#.*/s, '').trim() }
}
