import { readFileSync } from 'node:fs'
import { resolveLocalPath } from './paths.ts'

export interface Interpolation {
  value: unknown
  /** Files whose text went into the value. */
  files: string[]
}

/** Called for each thing that is wrong, with the path of the option. */
export type Report = (path: string, message: string) => void

/**
 * Fills `${NAME}` from the environment and `${file:/run/secrets/key}` from a file (without its final line break) in
 * every string of a configuration. `$${` stands for a literal `${`.
 *
 * @param base directory that relative file paths start at
 */
export function interpolate(
  value: unknown,
  env: Readonly<Record<string, string | undefined>>,
  base: string,
  report: Report,
): Interpolation {
  const files: string[] = []

  function fill(text: string, path: string): string {
    return text.replace(/\$(\$\{)|\$\{([^}]*)\}?/g, (whole, escaped: string | undefined, name: string) => {
      if (escaped) return escaped
      if (whole.endsWith('}') && name.startsWith('file:')) return readValue(name.slice(5), path) ?? whole
      if (!/^\$\{[A-Za-z_]\w*\}$/.test(whole)) {
        // What stands there may be part of a password and is not repeated.
        report(
          path,
          `holds "$\{" but no variable: write \${NAME} or \${file:/path}, and $\${ for a literal one`,
        )
        return whole
      }
      const found = Object.hasOwn(env, name) ? env[name] : undefined
      if (found === undefined) report(path, `the environment variable ${name} is not set`)
      return found ?? whole
    })
  }

  function readValue(name: string, path: string): string | undefined {
    const file = resolveLocalPath(name, base)
    try {
      const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
      files.push(file)
      return text
    } catch (error) {
      report(path, `cannot read the file "${name}" (${(error as NodeJS.ErrnoException).code})`)
      return undefined
    }
  }

  function walk(node: unknown, path: string): unknown {
    if (typeof node === 'string') return node.includes('${') ? fill(node, path) : node
    if (Array.isArray(node)) return node.map((item, index) => walk(item, `${path}[${index}]`))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(
      Object.entries(node).map(([name, item]) => [name, walk(item, path ? `${path}.${name}` : name)]),
    )
  }

  return { value: walk(value, ''), files }
}
