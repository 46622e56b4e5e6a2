import type { Node } from 'jsonc-parser'

/** Where the parts of a configuration came from. Plain data: it goes to other processes. */
export interface Sources {
  /** Of the configuration file. */
  readonly text?: string | undefined
  /** Where parts of the configuration stand in a file that is written otherwise, the narrowest first. */
  readonly moved?: readonly { readonly from: string; readonly to: readonly string[] }[] | undefined
  /** What lies over the file, the strongest first, by its path in the configuration. */
  readonly given: readonly { readonly path: string; readonly name: string }[]
}

/** Flags of the command line that set something, by its path. */
const FLAGS: Readonly<Record<string, string>> = {
  'server.host': '--host',
  'server.port': '--port',
  'server.key': '--key',
  'server.strictPort': '--strict-port',
  'server.workers': '--workers',
  'server.watch': '--no-watch',
  'auth.anonymous': '--allow-anonymous',
  'log.level': '--log-level',
}

/** The names of flags that were given. */
export function flagSources(flags: Record<string, Record<string, unknown>>): Sources['given'] {
  return Object.entries(flags).flatMap(([section, members]) =>
    Object.keys(members).flatMap(member => {
      const name = FLAGS[`${section}.${member}`]
      return name === undefined || members[member] === undefined
        ? []
        : [{ path: `${section}.${member}`, name }]
    }),
  )
}

/**
 * Finds what a person has to change for something at a path.
 *
 * @returns a line of the file, a variable or a flag; undefined when nothing of it stands anywhere
 */
export async function createLocator({
  text,
  given,
  moved = [],
}: Sources): Promise<(path: string) => string | undefined> {
  const lines = text === undefined ? new Map<string, number>() : await linesOf(text)
  /** Of the part itself, or of the nearest around it. */
  const lineOf = (path: string) => {
    for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
      const line = lines.get(at)
      if (line !== undefined) return `line ${line}`
    }
    return undefined
  }
  return path => {
    const wanted = plain(path)
    const over = given.find(one => isWithin(wanted.toLowerCase(), plain(one.path).toLowerCase()))
    if (over) return over.name
    const move = moved.find(({ from }) => isWithin(wanted, plain(from)))
    if (move === undefined) return lineOf(wanted)
    const places = move.to.map(to => plain(to) + wanted.slice(plain(move.from).length))
    return lineOf(places.find(at => lines.has(at)) ?? places[0] ?? '')
  }
}

const isWithin = (path: string, around: string) => path === around || path.startsWith(`${around}.`)

/** One spelling for `a.b[0]`, `a["b"][0]` and `a.b.0`. */
function plain(path: string): string {
  return path.replace(/\["?([^"[\]]*)"?\]/g, '.$1').replace(/^\./, '')
}

async function linesOf(text: string): Promise<Map<string, number>> {
  const { parseTree } = await import('jsonc-parser')
  const lines = new Map<string, number>()
  let [line, seen] = [1, 0]
  /** In the order of the text, which is counted once. */
  function walk(node: Node, path: string): void {
    for (; seen < node.offset; seen++) if (text[seen] === '\n') line++
    if (path !== '' && !lines.has(path)) lines.set(path, line)
    for (const [index, child] of (node.children ?? []).entries()) {
      const [name, value] = node.type === 'object' ? (child.children ?? []) : []
      const key = name ? String(name.value) : String(index)
      const inner = name ? value : child
      if (inner) walk(inner, path === '' ? key : `${path}.${key}`)
    }
  }
  const root = parseTree(text.replace(/^\ufeff/, ''), [], { allowTrailingComma: true })
  if (root) walk(root, '')
  return lines
}
