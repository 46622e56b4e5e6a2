/** Maximum nesting depth. Deeper elements become siblings. */
const MAX_DEPTH = 100

/** Name of text nodes. */
const TEXT = '#text'

interface Element {
  /** Name without its namespace prefix. */
  readonly name: string
  /** Attributes, not decoded. */
  readonly attributes: string
  readonly children: Element[]
  /** Empty except for text nodes. */
  readonly text: string
  /** Where it begins in the document. */
  readonly position: number
}

/** A step of a path: the name of an element (`*`: any), and its number among those with the name in the same parent, from 1. */
interface Step {
  readonly name: string
  readonly number: number | undefined
  /** At any depth, as after `//`. */
  readonly anywhere: boolean
}

export interface XmlPath {
  readonly steps: readonly Step[]
  /** Name of the attribute to read instead of the text. */
  readonly attribute: string | undefined
}

/**
 * Parses the subset of XPath that responses of hosts need: `/files/file[1]/url`, `//url`, `link/@href`, `data/text()`.
 *
 * @throws Error whose message follows the name of the option
 */
export function parseXmlPath(path: string): XmlPath {
  const refuse = () =>
    new Error(
      `has the unsupported XML path "${path}". Use names and numbers only, such as /files/file[1]/url`,
    )
  const parts = path
    .trim()
    .replace(/\/text\(\)$/, '')
    .split(/(\/{1,2})/)
    .filter((part, index) => part !== '' || index > 0)
  const steps: Step[] = []
  let anywhere = false
  let attribute: string | undefined
  for (const part of parts) {
    if (part === '/' || part === '//') {
      anywhere = part === '//'
      continue
    }
    const found = /^(@)?([\w.:*-]+)(?:\[(\d+)\])?$/u.exec(part)
    if (!found || attribute !== undefined) throw refuse()
    const [, at, name = '', number] = found
    if (at) attribute = localName(name)
    else steps.push({ name: localName(name), number: number ? Number(number) : undefined, anywhere })
  }
  if (steps.length === 0) throw refuse()
  return { steps, attribute }
}

/**
 * Returns the text at a path, including nested elements. Undefined if the response is not XML or has no such element. Each step
 * goes through each element once: `//a//a//b` would otherwise find a nested `b` once for every pair of `a` around it.
 */
export function findInXml(xml: string, { steps, attribute }: XmlPath): string | undefined {
  let found: readonly Element[] = [readXml(xml)]
  for (const { name, number, anywhere } of steps) {
    const parents = anywhere ? withDescendants(found) : found
    found = [...parents].flatMap(({ children }) => {
      const named = children.filter(one => (name === '*' ? one.name !== TEXT : one.name === name))
      return number === undefined ? named : named.slice(number - 1, number)
    })
  }
  const first = found.reduce<Element | undefined>(
    (before, one) => (before && before.position < one.position ? before : one),
    undefined,
  )
  return attribute === undefined ? first && textOf(first) : first && attributeOf(first, attribute)
}

function withDescendants(elements: readonly Element[], found = new Set<Element>()): ReadonlySet<Element> {
  for (const element of elements)
    if (!found.has(element)) withDescendants(element.children, found.add(element))
  return found
}

/** Maximum number of characters that are read. Documents of services are short. */
const DOCUMENT_CHARACTERS = 16 * 1024

/** Returns the text of the first element with that name. Undefined if there is none or it is empty. */
export function readElement(xml: string, name: string): string | undefined {
  return (
    findInXml(xml.trimStart().slice(0, DOCUMENT_CHARACTERS), parseXmlPath(`//${name}`))?.trim() || undefined
  )
}

/** Matches comments, CDATA, instructions, declarations, tags and the text between them, without backtracking. */
const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[([\s\S]*?)(?:\]\]>|$)|<[?!][^>]*(?:>|$)|<(\/?)([^\s/<>]+)([\s/][^<>]*)?>|([^<]+)/g

/** Parses leniently: an unclosed element ends with its parent. Entities of a document type are ignored, so none can expand. */
function readXml(xml: string): Element {
  const root = elementOf('', 0)
  const open = [root]
  for (const { 1: cdata, 2: closing, 3: tag, 4: attributes = '', 5: text, index } of xml.matchAll(TOKEN)) {
    const parent = open.at(-1) ?? root
    if (cdata !== undefined) parent.children.push({ ...elementOf(TEXT, index), text: cdata })
    else if (text !== undefined) parent.children.push({ ...elementOf(TEXT, index), text: decode(text) })
    else if (tag !== undefined && closing) {
      const name = localName(tag)
      const start = open.findLastIndex(element => element.name === name)
      if (start > 0) open.length = start
    } else if (tag !== undefined) {
      const element = elementOf(localName(tag), index, attributes)
      parent.children.push(element)
      if (!attributes.endsWith('/') && open.length < MAX_DEPTH) open.push(element)
    }
  }
  return root
}

function elementOf(name: string, position: number, attributes = ''): Element {
  return { name, attributes, children: [], text: '', position }
}

function attributeOf({ attributes }: Element, wanted: string): string | undefined {
  for (const [, name = '', a, b] of attributes.matchAll(/(?:^|\s)([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g))
    if (localName(name) === wanted) return decode(a ?? b ?? '')
  return undefined
}

function localName(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1)
}

/** Returns all descendants, in document order. */
function descendants(element: Element, found: Element[] = []): Element[] {
  for (const child of element.children) {
    found.push(child)
    descendants(child, found)
  }
  return found
}

function textOf(element: Element): string {
  return descendants(element)
    .map(({ text }) => text)
    .join('')
}

const ENTITIES = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}
