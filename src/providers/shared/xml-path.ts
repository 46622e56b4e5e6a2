/** Maximum nesting depth. Deeper elements become siblings. */
const MAX_DEPTH = 100

export interface XmlPath {
  /** Names of elements (`*`: any), each with its number among those with the name in the same parent, from 1. */
  readonly steps: readonly { readonly name: string; readonly number: number | undefined }[]
  /** Whether the first step is at any depth, as after `//`. */
  readonly isAnywhere: boolean
  /** Name of the attribute to read instead of the text. */
  readonly attribute: string | undefined
}

/** Matches slashes, steps such as `file[1]` or `*`, and an attribute. */
const PATH =
  /^(\/{0,2})((?:[\w.:-]+(?:\[\d+\])?|\*)(?:\/(?:[\w.:-]+(?:\[\d+\])?|\*))*)(?:\/@([\w.:-]+)|\/text\(\))?$/

/**
 * Parses the subset of XPath that responses of hosts need: `/files/file[1]/url`, `//url`, `link/@href`, `data/text()`.
 *
 * @throws Error whose message follows the name of the option
 */
export function parseXmlPath(path: string): XmlPath {
  const [, slashes, names, attribute] = PATH.exec(path.trim()) ?? []
  if (names === undefined)
    throw new Error(
      `has the unsupported XML path "${path}". Use names and numbers only, such as /files/file[1]/url`,
    )
  const steps = names.split('/').map(step => {
    const [name = '', number] = step.split(/[[\]]/)
    return { name: localName(name), number: number === undefined ? undefined : Number(number) }
  })
  return { steps, isAnywhere: slashes === '//', attribute: attribute && localName(attribute) }
}

/** An element that has not ended. */
interface OpenElement {
  readonly name: string
  readonly number: number
  /** Numbers of its children so far, by name. */
  readonly counts: Map<string, number>
}

function isAt({ steps, isAnywhere }: XmlPath, open: readonly OpenElement[]): boolean {
  if (isAnywhere ? open.length < steps.length : open.length !== steps.length) return false
  return open.slice(-steps.length).every((element, index) => {
    const { name, number = element.number } = steps[index] ?? {}
    return (name === element.name || name === '*') && number === element.number
  })
}

/** Matches comments, CDATA, instructions, declarations, tags and the text between them, without backtracking. */
const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[([\s\S]*?)(?:\]\]>|$)|<[?!][^>]*(?:>|$)|<(\/?)([^\s/<>]+)([\s/][^<>]*)?>|([^<]+)/g

/**
 * Returns the text of the first element at a path, including nested elements. Undefined if the response is not XML or has no such
 * element. Reads leniently, in one pass: an unclosed element ends with its parent, and entities of a document type are ignored,
 * so none can expand.
 */
export function findInXml(xml: string, path: XmlPath): string | undefined {
  const open: OpenElement[] = []
  const roots = new Map<string, number>()
  let found: { readonly depth: number; text: string } | undefined
  for (const { 1: cdata, 2: closing, 3: tag, 4: attributes = '', 5: text = '' } of xml.matchAll(TOKEN)) {
    if (tag === undefined) {
      if (found) found.text += cdata ?? decode(text)
      continue
    }
    const name = localName(tag)
    if (closing) {
      const start = open.findLastIndex(element => element.name === name)
      if (start >= 0) open.length = start
      if (found && open.length <= found.depth) return found.text
      continue
    }
    const siblings = open.at(-1)?.counts ?? roots
    const number = (siblings.get(name) ?? 0) + 1
    siblings.set(name, number)
    open.push({ name, number, counts: new Map() })
    const isEmpty = attributes.endsWith('/')
    if (!found && isAt(path, open)) {
      if (path.attribute !== undefined) return attributeOf(attributes, path.attribute)
      if (isEmpty) return ''
      found = { depth: open.length - 1, text: '' }
    }
    if (isEmpty || open.length > MAX_DEPTH) open.pop()
  }
  return found?.text
}

/** Maximum number of characters that are read. Documents of services are short. */
const DOCUMENT_CHARACTERS = 16 * 1024

/** Returns the text of the first element with that name. Undefined if there is none or it is empty. */
export function readElement(xml: string, name: string): string | undefined {
  return (
    findInXml(xml.trimStart().slice(0, DOCUMENT_CHARACTERS), parseXmlPath(`//${name}`))?.trim() || undefined
  )
}

function attributeOf(attributes: string, wanted: string): string | undefined {
  for (const [, name = '', a, b] of attributes.matchAll(/(?:^|\s)([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g))
    if (localName(name) === wanted) return decode(a ?? b ?? '')
  return undefined
}

function localName(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1)
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
