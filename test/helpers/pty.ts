import { fileURLToPath } from 'node:url'
import { type ProgramResult, runProgram } from './run-program.ts'
import { BIN, environmentIn } from './spawn-server.ts'

const SCRIPT = fileURLToPath(new URL('../fixtures/terminal.py', import.meta.url))

/**
 * Runs a program on a terminal of its own and types into it. Needs `python3`.
 *
 * @param steps what to wait for, and what to type then
 * @returns what the terminal showed, and how the program ended
 */
export function runOnTerminal(
  command: readonly string[],
  steps: readonly (readonly [wanted: string, answer: string])[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<ProgramResult> {
  return runProgram('python3', [SCRIPT, JSON.stringify(steps), ...command], { cwd, env })
}

/** The same for the built program, which keeps everything below its working directory. */
export function runBuiltOnTerminal(
  args: readonly string[],
  steps: Parameters<typeof runOnTerminal>[1],
  cwd: string,
  env: Record<string, string> = {},
): Promise<ProgramResult> {
  const environment = environmentIn(cwd, { TERM: 'xterm', ...env })
  return runOnTerminal([process.execPath, BIN, ...args], steps, cwd, environment)
}
