import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export interface ProgramResult {
  exitCode: number | null
  stdout: string
  stderr: string
}

/** Runs a program without a shell, in an environment that no proxy setting and no configuration of the user reaches. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: { input?: string | Uint8Array; cwd?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<ProgramResult> {
  const env = {
    PATH: process.env['PATH'],
    LC_ALL: 'C.UTF-8',
    HOME: options.cwd ?? '/nonexistent',
    ...options.env,
  }
  const child = spawn(program, args, { cwd: options.cwd, env })
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  child.stdin.on('error', () => {}) // a program may end without reading
  child.stdin.end(options.input)
  const [exitCode, stdout, stderr] = await Promise.all([exit, text(child.stdout), text(child.stderr)])
  return { exitCode, stdout, stderr }
}
