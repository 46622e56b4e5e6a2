import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'

export interface CliOptions {
  /** Working directory; the user's own directories lie below it. */
  cwd: string
  env?: Record<string, string>
  /** Standard input. */
  input?: string | Uint8Array
}

export interface CliResult {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs the built command to its end. Whatever it is asked to do, it shows nobody a stack trace. */
export function runCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return run(process.execPath, [BIN, ...args], options)
}

/** Runs commands of the shell in which `upload_server` is the built command. */
export function runShell(script: string, options: CliOptions): Promise<CliResult> {
  const env = { NODE: process.execPath, BIN, ...options.env }
  return run('sh', ['-c', `upload_server() { "$NODE" "$BIN" "$@"; }\n${script}`], { ...options, env })
}

async function run(program: string, args: string[], { cwd, env, input }: CliOptions): Promise<CliResult> {
  const child = spawn(program, args, { cwd, env: environmentIn(cwd, env) })
  child.stdin.on('error', () => {}) // it may end without reading
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  expect(stdout + stderr).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m)
  return { code, stdout, stderr }
}
