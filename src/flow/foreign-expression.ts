import { type Context, createContext, Script } from 'node:vm'
import { membersOf } from '../members.ts'

/** Time limit of one use of an expression, because it blocks the event loop. */
const LIMIT_MS = 100
/** The limit is wall-clock time, so on a busy machine a fast expression may need another try. */
const TRIES = 3

const EXEC = new Script('expression.exec(text)')
const REPLACE = new Script('text.replace(expression, to)')

// `EXEC` and `REPLACE` return the results of their methods.
/** `exec` of an untrusted expression (ReDoS). @throws Error if it takes longer than 100 ms */
export function execForeign(expression: RegExp, text: string): RegExpExecArray | null {
  return run(EXEC, { expression, text }) as RegExpExecArray | null
}

/** `replace` with an untrusted expression (ReDoS). @throws Error if it takes longer than 100 ms */
export function replaceForeign(expression: RegExp, text: string, to: string): string {
  return run(REPLACE, { expression, text, to }) as string
}

let context: Context | undefined

function run(script: Script, values: { expression: RegExp; text: string; to?: string }): unknown {
  context ??= createContext({}) // takes a millisecond, and few configurations need it
  Object.assign(context, values)
  try {
    for (let tries = 1; ; tries++) {
      try {
        return script.runInContext(context, { timeout: LIMIT_MS })
      } catch (error) {
        if (tries === TRIES || membersOf(error)['code'] !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
      }
    }
  } finally {
    Object.assign(context, { text: '' })
  }
}
