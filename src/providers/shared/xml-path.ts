/** Deepest nesting that is kept: what lies deeper becomes a sibling. */
const MAX_DEPTH = 100

interface Element {
  /** Without the prefix of its namespace. */
  readonly name: string
  /** As they are written. */
  readonly attributes: string
  readonly children: Element[]
  /** Empty for all but text nodes. */
  readonly text: string
}

/** A step of a path: an element by its name (`*`: any) and, from 1 on, its number among those. */
interface Step {
  readonly name: string
  readonly number: number | undefined
  /** At any depth, as after `//`. */
  readonly anywhere: boolean
}

export interface XmlPath {
  readonly steps: readonly Step[]
  /** Name of the attribute that is meant instead of the text. */
  readonly attribute: string | undefined
}

/**
 * Reads the part of XPath that answers of hosts need: `/files/file[1]/url`, `//url`, `link/@href`, `data/text()`.
 *
 * @throws Error whose message goes on after the name of the option
 */
export function parseXmlPath(path: string): XmlPath {
  const refuse = () =>
    new Error(`has the XML path "${path}", but only names and numbers can be used: /files/file[1]/url`)
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

/** The text at a path, that of elements inside included; undefined when the answer is no XML or has no such element. */
export function findInXml(xml: string, { steps, attribute }: XmlPath): string | undefined {
  let found: readonly Element[] = [readXml(xml)]
  for (const { name, number, anywhere } of steps) {
    found = found.flatMap(element => {
      const candidates = anywhere ? descendants(element) : element.children
      const named = candidates.filter(one => name === '*' || one.name === name)
      return number === undefined ? named : named.slice(number - 1, number)
    })
  }
  const [first] = found
  return attribute === undefined ? first && textOf(first) : first && attributeOf(first, attribute)
}

/** The documents of services are short; of what is longer only so many characters are read. */
const DOCUMENT_CHARACTERS = 16 * 1024

/** The text of the first element of that name in a service's short answer; undefined when it is empty, too. */
export function readElement(xml: string, name: string): string | undefined {
  return (
    findInXml(xml.trimStart().slice(0, DOCUMENT_CHARACTERS), parseXmlPath(`//${name}`))?.trim() || undefined
  )
}

/** Comments, CDATA, instructions and declarations, tags, and the text between them. Never looks at anything twice. */
const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[([\s\S]*?)(?:\]\]>|$)|<[?!][^>]*(?:>|$)|<(\/?)([^\s/<>]+)([\s/][^<>]*)?>|([^<]+)/g

/** Reads leniently: what does not close is closed by its parent. Entities of a document type are not known, so none grows. */
function readXml(xml: string): Element {
  const root = elementOf('')
  const open = [root]
  for (const [, cdata, closing, tag, attributes = '', text] of xml.matchAll(TOKEN)) {
    const parent = open.at(-1) ?? root
    if (cdata !== undefined) parent.children.push({ ...elementOf('#text'), text: cdata })
    else if (text !== undefined) parent.children.push({ ...elementOf('#text'), text: decode(text) })
    else if (tag !== undefined && closing) {
      const name = localName(tag)
      const start = open.findLastIndex(element => element.name === name)
      if (start > 0) open.length = start
    } else if (tag !== undefined) {
      const element = elementOf(localName(tag), attributes)
      parent.children.push(element)
      if (!attributes.endsWith('/') && open.length < MAX_DEPTH) open.push(element)
    }
  }
  return root
}

function elementOf(name: string, attributes = ''): Element {
  return { name, attributes, children: [], text: '' }
}

function attributeOf({ attributes }: Element, wanted: string): string | undefined {
  for (const [, name = '', a, b] of attributes.matchAll(/(?:^|\s)([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g))
    if (localName(name) === wanted) return decode(a ?? b ?? '')
  return undefined
}

function localName(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1)
}

/** All elements inside, in the order of the document. */
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

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}
