import { readFileSync } from 'node:fs'
import { decodeText } from '../decode-text.ts'
import { messageOf, systemCode } from '../errors.ts'
import { resolveLocalPath } from './paths.ts'

export interface Interpolation {
  value: unknown
  /** The files that were inserted. */
  files: string[]
}

/** Is called for each error, with the path of the option. */
export type OnProblem = (path: string, message: string) => void

/**
 * Replaces `${NAME}` with an environment variable and `${file:/run/secrets/key}` with the text of a file (without its final
 * line break) in every string of a configuration. `$${` is a literal `${`.
 *
 * @param base directory that relative file paths start at
 */
export function interpolate(
  value: unknown,
  env: Readonly<Record<string, string | undefined>>,
  base: string,
  report: OnProblem,
): Interpolation {
  const files: string[] = []

  function fill(text: string, path: string): string {
    return text.replace(/\$(\$\{)|\$\{([^}]*)\}?/g, (whole, escaped: string | undefined, name: string) => {
      if (escaped) return escaped
      if (whole.endsWith('}') && name.startsWith('file:')) return readValue(name.slice(5), path) ?? whole
      if (!/^\$\{[A-Za-z_]\w*\}$/.test(whole)) {
        // The text may be part of a password, so the message does not repeat it.
        report(
          path,
          `contains "$\{" without a valid variable. Write \${NAME} or \${file:/path}, or $\${ for a literal "$\{"`,
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
      const text = decodeText(readFileSync(file)).replace(/\r?\n$/, '')
      files.push(file)
      return text
    } catch (error) {
      report(path, `could not read the file "${name}" (${systemCode(error) ?? messageOf(error)})`)
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
