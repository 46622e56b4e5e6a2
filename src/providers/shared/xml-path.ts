/** Maximum nesting depth. Deeper elements become siblings. */
const MAX_DEPTH = 100

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

const STEP = /(^|\/{1,2})(@)?([\w.:*-]+)(?:\[(\d+)\])?/y

/**
 * Parses the subset of XPath that responses of hosts need: `/files/file[1]/url`, `//url`, `link/@href`, `data/text()`.
 *
 * @throws Error whose message follows the name of the option
 */
export function parseXmlPath(path: string): XmlPath {
  const text = path.trim().replace(/\/text\(\)$/, '')
  const steps: Step[] = []
  let attribute: string | undefined
  for (STEP.lastIndex = 0; STEP.lastIndex < text.length || steps.length === 0; ) {
    const found = STEP.exec(text)
    if (!found || attribute !== undefined)
      throw new Error(
        `has the unsupported XML path "${path}". Use names and numbers only, such as /files/file[1]/url`,
      )
    const [, slashes, at, name = '', number] = found
    if (at) attribute = localName(name)
    else
      steps.push({
        name: localName(name),
        number: number ? Number(number) : undefined,
        anywhere: slashes === '//',
      })
  }
  return { steps, attribute }
}

/** An element that has not ended. */
interface OpenElement {
  readonly name: string
  /** Numbers of its children so far, by name and altogether (`*`). */
  readonly counts: Map<string, number>
  /** Indexes of the steps that its children may be. */
  readonly next: ReadonlySet<number>
}

/** Matches comments, CDATA, instructions, declarations, tags and the text between them, without backtracking. */
const TOKEN =
  /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[([\s\S]*?)(?:\]\]>|$)|<[?!][^>]*(?:>|$)|<(\/?)([^\s/<>]+)([\s/][^<>]*)?>|([^<]+)/g

/**
 * Returns the text of the first element at a path, including nested elements. Undefined if the response is not XML or has no such
 * element. Reads leniently, in one pass: an unclosed element ends with its parent, and entities of a document type are ignored,
 * so none can expand.
 */
export function findInXml(xml: string, { steps, attribute }: XmlPath): string | undefined {
  const open: OpenElement[] = [{ name: '', counts: new Map(), next: new Set([0]) }]
  let found: { readonly depth: number; text: string } | undefined
  for (const { 1: cdata, 2: closing, 3: tag, 4: attributes = '', 5: text = '' } of xml.matchAll(TOKEN)) {
    if (tag === undefined) {
      if (found) found.text += cdata ?? decode(text)
      continue
    }
    const name = localName(tag)
    if (closing) {
      const start = open.findLastIndex(element => element.name === name)
      if (start > 0) open.length = start
      if (found && open.length <= found.depth) return found.text
      continue
    }
    const element = {
      name,
      counts: new Map(),
      next: found ? new Set<number>() : nextSteps(steps, name, open.at(-1)),
    }
    const isOpen = !attributes.endsWith('/') && open.length < MAX_DEPTH
    if (element.next.has(steps.length)) {
      if (attribute !== undefined) return attributeOf(attributes, attribute)
      if (!isOpen) return ''
      found = { depth: open.length, text: '' }
    }
    if (isOpen) open.push(element)
  }
  return found?.text
}

/** Counts a child, and returns the indexes of the steps that its own children may be. The number of steps: it is at the path. */
function nextSteps(steps: readonly Step[], name: string, parent: OpenElement | undefined): Set<number> {
  const next = new Set<number>()
  for (const counted of [name, '*']) parent?.counts.set(counted, (parent.counts.get(counted) ?? 0) + 1)
  for (const index of parent?.next ?? []) {
    const step = steps[index]
    if (step?.anywhere) next.add(index)
    const isNamed = step?.name === name || step?.name === '*'
    if (isNamed && (step.number ?? parent?.counts.get(step.name)) === parent?.counts.get(step.name))
      next.add(index + 1)
  }
  return next
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
