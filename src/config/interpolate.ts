import { readFileSync } from 'node:fs'
import { decodeText } from '../decode-text.ts'
import { messageOf, systemCode } from '../errors.ts'
import { pathOf } from '../members.ts'
import { walk } from '../options.ts'
import { resolveLocalPath } from './paths.ts'
import type { OnProblem } from './problems.ts'

/**
 * Replaces `${NAME}` with an environment variable and `${file:/run/secrets/key}` with the text of a file (without its final
 * line break) in every string of a configuration. `$${` is a literal `${`.
 *
 * @param base directory that relative file paths start at
 * @returns the configuration, and the files that were inserted
 */
export function interpolate<T>(
  value: T,
  env: Readonly<Record<string, string | undefined>>,
  base: string,
  report: OnProblem,
): { value: T; files: string[] } {
  const files: string[] = []
  const fill = (text: string, path: string) =>
    text.replace(/\$(\$\{)|\$\{([^}]*)\}?/g, (whole, escaped: string | undefined, name: string) => {
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

  const filled = walk(undefined, value, (leaf, _, steps) =>
    typeof leaf === 'string' ? fill(leaf, pathOf(steps)) : leaf,
  )
  return { value: filled, files }
}
