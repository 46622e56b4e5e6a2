import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { run } from '../../src/cli/main.ts'
import { createTerminal, type TerminalHost } from '../../src/cli/terminal.ts'
import { createCanceller } from '../../src/flow/cancellation.ts'
import { configIn, expectNoSecret } from '../helpers/secrets.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'

// Commander asks the process, whatever a command's own environment says.
for (const name of ['UPLOAD_SERVER_KEY', 'UPLOAD_COMMENT_TOKEN']) delete process.env[name]

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

/** Runs a command in this process, as the built one does. Whatever it is asked to do, it shows nobody a stack trace. */
export async function runCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  const { cwd, env, input } = options
  const out = { stdout: '', stderr: '' }
  const to = (name: keyof typeof out) => ({
    write(text: string) {
      out[name] += text
    },
  })
  const host: TerminalHost = {
    env: environmentIn(cwd, env),
    platform: process.platform,
    cwd: () => cwd,
    stdin: Readable.from(input?.length ? [Buffer.from(input)] : []),
    stdout: to('stdout'),
    stderr: to('stderr'),
  }
  const code = await run(
    args,
    createTerminal(host, () => createCanceller().signal),
  )
  // A process that ends takes the handlers of its signals with it.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name)
  return checked({ code, ...out }, options)
}

/** Runs the built program to its end: what depends on a process, and each command once. */
export function runBuilt(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return start(process.execPath, [BIN, ...args], options)
}

/** Runs commands of the shell in which `upload_server` is the built program. */
export function runShell(script: string, options: CliOptions): Promise<CliResult> {
  const env = { NODE: process.execPath, BIN, ...options.env }
  return start('sh', ['-c', `upload_server() { "$NODE" "$BIN" "$@"; }\n${script}`], { ...options, env })
}

async function start(program: string, args: string[], { cwd, env, input }: CliOptions): Promise<CliResult> {
  const child = spawn(program, args, { cwd, env: environmentIn(cwd, env) })
  child.stdin.on('error', () => {}) // it may end without reading
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return checked({ code, stdout, stderr }, { cwd, env })
}

/** Nothing prints a stack trace, or a secret of its configuration or environment. */
function checked(result: CliResult, { cwd, env }: Pick<CliOptions, 'cwd' | 'env'>): CliResult {
  const printed = result.stdout + result.stderr
  expect(printed).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m)
  expectNoSecret(printed, configIn(cwd), env)
  return result
}
