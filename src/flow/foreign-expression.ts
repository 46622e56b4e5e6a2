import { createContext, Script } from 'node:vm'
import { membersOf } from '../members.ts'

/** What one use of an expression may take: nothing else goes on meanwhile. */
const LIMIT_MS = 100
/** The limit is by the wall clock: on a busy machine a quick expression may just not have had its turn. */
const TRIES = 3

const CONTEXT = createContext({})
const EXEC = new Script('expression.exec(text)')
const REPLACE = new Script('text.replace(expression, to)')

// `EXEC` and `REPLACE` give what their methods do.
/** `exec` of an expression that somebody else wrote. @throws Error when it takes longer than 100 ms */
export function execForeign(expression: RegExp, text: string): RegExpExecArray | null {
  return run(EXEC, { expression, text }) as RegExpExecArray | null
}

/** `replace` with an expression that somebody else wrote. @throws Error when it takes longer than 100 ms */
export function replaceForeign(expression: RegExp, text: string, to: string): string {
  return run(REPLACE, { expression, text, to }) as string
}

function run(script: Script, values: { expression: RegExp; text: string; to?: string }): unknown {
  Object.assign(CONTEXT, values)
  try {
    for (let tries = 1; ; tries++) {
      try {
        return script.runInContext(CONTEXT, { timeout: LIMIT_MS })
      } catch (error) {
        if (tries === TRIES || membersOf(error)['code'] !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
      }
    }
  } finally {
    Object.assign(CONTEXT, { text: '' })
  }
}
