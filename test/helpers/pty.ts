import { type ProgramResult, runProgram } from './run-program.ts'
import { BIN, environmentIn } from './spawn-server.ts'

/** Waits for words on the terminal, types at each, and gives up after a while. */
const SCRIPT = `
import fcntl, json, os, pty, signal, struct, sys, termios
signal.alarm(40)
steps, command = json.loads(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    os.execvp(command[0], command)
seen = b""
def read():
    global seen
    try: chunk = os.read(terminal, 4096)
    except OSError: chunk = b""
    seen += chunk
    return chunk
at = 0
for wanted, answer in steps:
    while wanted.encode() not in seen[at:] and read(): pass
    if wanted.encode() not in seen[at:]: break
    at = seen.index(wanted.encode(), at) + len(wanted.encode())
    os.write(terminal, answer.encode())
while read(): pass
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
`

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
  return runProgram('python3', ['-c', SCRIPT, JSON.stringify(steps), ...command], { cwd, env })
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
