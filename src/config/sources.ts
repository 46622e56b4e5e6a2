import type { Node } from 'jsonc-parser'

/** Where the parts of a configuration come from. Plain data, because it is sent to other processes. */
export interface Sources {
  /** Text of the configuration file. */
  readonly text?: string | undefined
  /** Paths of settings in a file of another format, the most specific first. */
  readonly moved?: readonly { readonly from: string; readonly to: readonly string[] }[] | undefined
  /** What overrides the file, by the path of the setting. The one with the highest precedence comes first. */
  readonly given: readonly { readonly path: string; readonly name: string }[]
}

/** Flags of the command line, by the path of the setting. */
const FLAGS: Readonly<Record<string, string>> = {
  'server.host': '--host',
  'server.port': '--port',
  'server.key': '--key',
  'server.strictPort': '--strict-port',
  'server.watch': '--no-watch',
  'auth.anonymous': '--allow-anonymous',
  'log.level': '--log-level',
}

/** The flags that were given. */
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
 * Creates a function that finds where a setting comes from, so that an error can name what to change.
 *
 * @returns a line of the file, an environment variable or a flag; undefined if the setting is a default
 */
export async function createLocator({
  text,
  given,
  moved = [],
}: Sources): Promise<(path: string) => string | undefined> {
  const lines = text === undefined ? new Map<string, number>() : await linesOf(text)
  /** The line of the setting, or of the nearest object around it. */
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

/** Normalizes `a.b[0]`, `a["b"][0]` and `a.b.0` to the last spelling. */
function plain(path: string): string {
  return path.replace(/\["?([^"[\]]*)"?\]/g, '.$1').replace(/^\./, '')
}

async function linesOf(text: string): Promise<Map<string, number>> {
  const { parseTree } = await import('jsonc-parser')
  const lines = new Map<string, number>()
  let [line, seen] = [1, 0]
  /** Walks in the order of the text, so that its lines are counted only once. */
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
  const root = parseTree(text, [], { allowTrailingComma: true })
  if (root) walk(root, '')
  return lines
}
