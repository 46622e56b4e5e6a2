import { readFileSync } from 'node:fs'
import { Argument, Command, Option } from 'commander'
import { createGrowingMask } from '../mask.ts'
import { keepReportsQuiet } from '../server/crash.ts'
import { HELP } from './help.ts'
import type { HistoryOptions } from './history.ts'
import type { InitOptions } from './init.ts'
import { collect, parseCount, parsePort, parseServer, parseWorkers } from './parse.ts'
import { isHangup, realSignals, untilInterrupted } from './signals.ts'
import { type CommonOptions, FORMATS, plain, SHELLS, type Terminal } from './terminal.ts'
import type { UploadOptions } from './upload.ts'

/** Runs the command line and sets the exit code. Mistakes of the user end in a sentence, never in a stack trace. */
export async function main(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnlessReaderLeft)
  const terminal = realTerminal()
  keepReportsQuiet(terminal.mask)
  try {
    await createProgram(terminal).parseAsync(argv)
  } catch (error) {
    terminal.note(terminal.mask(describe(error)))
    process.exitCode = 1
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const expected = ['ConfigError', 'UploadError', 'PortTakenError'].includes(error.name) || 'syscall' in error
  return expected || process.env['DEBUG'] === undefined ? error.message : (error.stack ?? error.message)
}

/** Whoever read the output and went away (`upload-server upload … | head -1`) has seen enough; a full disk is a failure. */
function endUnlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  process.stderr.write(`The output can't be written: ${error.message}\n`)
  process.exit(1)
}

function realTerminal(): Terminal {
  return {
    ...createGrowingMask(),
    env: process.env,
    platform: process.platform,
    cwd: process.cwd(),
    isInteractive: process.stderr.isTTY === true,
    canAsk: process.stdin.isTTY === true && process.stderr.isTTY === true,
    stdin: process.stdin,
    print: line => void process.stdout.write(`${plain(line)}\n`),
    note: line => void process.stderr.write(`${plain(line)}\n`),
  }
}

/** Sets the exit code from what a subcommand returns. The process ends by itself when nothing is left to do. */
const ends = async (work: Promise<number>): Promise<void> => {
  process.exitCode = await work
}

function createProgram(terminal: Terminal): Command {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const program = new Command('upload-server')
    .description('Takes files over HTTP as PicGo and PicList do, and answers with their links.')
    .version(version)
    .configureOutput({ writeErr: text => void process.stderr.write(plain(text)) })
  const config = () => new Option('-c, --config <file>', 'configuration file')

  addServe(program, config(), terminal)
  addUpload(program, config(), terminal)
  addInit(program, config(), terminal)
  program
    .command('check')
    .description('try every destination: store, fetch back, compare, remove')
    .argument('[destination]', '"provider" or "provider/configName"; default: all of them')
    .addOption(config())
    .action(async (id: string | undefined, options: CommonOptions) => {
      const { check } = await import('./check.ts')
      await ends(check(id, options, terminal))
    })
  program
    .command('heartbeat')
    .description('exit with 0 when the server answers')
    .addOption(config())
    .option('--server <url>', 'address of the server; default: as configured', parseServer)
    .action(async (options: CommonOptions & { server?: string }) => {
      const { heartbeat } = await import('./heartbeat.ts')
      await ends(heartbeat(options, terminal))
    })
  addHistory(program, config, terminal)
  addConfig(program, config, terminal)
  addCompletion(program, terminal)
  for (const command of [program, ...program.commands]) {
    const name = command === program ? '' : command.name()
    command.addHelpText('after', HELP[name] ?? '')
    const asked = name === '' || name === 'serve' ? 'upload-server' : `upload-server ${name}`
    command.showHelpAfterError(`Try: ${asked} --help`)
  }
  return program
}

function addCompletion(program: Command, terminal: Terminal): void {
  const load = () => import('./complete.ts')
  program
    .command('completion')
    .description('print what makes the tab key of a shell know this program')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { completion } = await load()
      process.exitCode = completion(shell, terminal)
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => ends((await load()).complete(program, words, terminal)))
}

function addHistory(program: Command, config: () => Option, terminal: Terminal): void {
  program
    .command('history')
    .description('list what was stored, newest first')
    .addOption(config())
    .option('--destination <id>', 'only there: "provider" or "provider/configName"')
    .option('--search <text>', 'only what has this in its name or address')
    .option('--sha256 <hash>', 'only these bytes')
    .option('--days <n>', 'only of the last days', parseCount)
    .option('--limit <n>', 'most entries', parseCount, 100)
    .option('--json', 'as JSON')
    .option('--prune <days>', 'remove entries older than this instead; files stay', parseCount)
    .action(async (options: HistoryOptions) => {
      const { history } = await import('./history.ts')
      await ends(history(options, terminal))
    })
  program
    .command('finalize')
    .description('finish uploads whose last steps failed')
    .argument('[id]', 'finalizationId; default: all that wait')
    .addOption(config())
    .action(async (id: string | undefined, options: CommonOptions) => {
      const { finalize } = await import('./finalize.ts')
      await ends(finalize(id, options, terminal))
    })
}

function addServe(program: Command, config: Option, terminal: Terminal): void {
  program
    .command('serve', { isDefault: true })
    .allowExcessArguments() // a misspelt command ends up here
    .description('start the server (may be left out)')
    .option('-p, --port <port>', 'port to listen on; 0 takes any free one (default: 36677)', parsePort)
    .option('--host <host>', 'address to listen on, or the path of a unix socket (default: 127.0.0.1)')
    .addOption(config)
    .option(
      '-k, --key <key>',
      'upload key for remote callers; UPLOAD_SERVER_KEY keeps it out of the process list',
    )
    .option('--strict-port', 'fail when the port is taken')
    .option('--workers <n>', 'processes that share the work, or "auto" (default: 1)', parseWorkers)
    .option('--allow-anonymous', 'let anybody upload without a key')
    .option('--log-level <level>', 'least important level that is logged (default: info)')
    .option('--no-watch', 'take a changed configuration at SIGHUP only')
    .action(async (options, command: Command) => {
      const [stray] = command.args
      if (stray !== undefined) command.error(await describeStray(stray, program))
      const { serve } = await import('./serve.ts')
      // Sockets that clients keep open must not keep the process.
      const code = await serve(options, terminal, realSignals())
      if (isHangup()) process.removeAllListeners('SIGHUP').kill(process.pid, 'SIGHUP')
      process.exit(code)
    })
}

async function describeStray(stray: string, program: Command): Promise<string> {
  const { suggest } = await import('../config/issues.ts')
  const shown = program.createHelp().visibleCommands(program)
  const names = shown.map(one => one.name()).filter(name => name !== 'help')
  return `error: unknown command '${stray}'${suggest(stray, names)}`
}

function addInit(program: Command, config: Option, terminal: Terminal): void {
  program
    .command('init')
    .description('make a first configuration: ask, try it, write it')
    .addOption(config)
    .option('--provider <type>', 'provider of the destination (default: asked; local with --yes)')
    .option('--name <name>', 'name of its configuration', 'Default')
    .option('--set <option=value>', 'an option of the provider; may be repeated', collect, [])
    .option('-k, --key <key>', 'upload key for other machines')
    .option('-y, --yes', 'ask nothing')
    .option('--no-check', 'write it without trying it')
    .action(async (options: InitOptions) => {
      const { init } = await import('./init.ts')
      await ends(init(options, terminal))
    })
}

function addUpload(program: Command, config: Option, terminal: Terminal): void {
  program
    .command('upload')
    .description('upload without a server and print one link a line')
    .addArgument(new Argument('[file...]', 'files, addresses, or - for standard input; none: the clipboard'))
    .addOption(config)
    .option('--picbed <provider>', 'provider of the destination')
    .option('--config-name <name>', 'saved configuration of the provider')
    .addOption(new Option('--format <format>', 'what to print').choices(FORMATS).default('url'))
    .option('--name <name>', 'what standard input is called')
    .option('--server <url>', 'send through a running server', parseServer)
    .addOption(new Option('-k, --key <key>', 'upload key of that server').env('UPLOAD_SERVER_KEY'))
    .option('--github-summary', 'append Markdown to the file that GITHUB_STEP_SUMMARY names')
    .action(async (files: string[], options: UploadOptions) => {
      const { upload } = await import('./upload.ts')
      await ends(upload(files, options, terminal, untilInterrupted()))
    })
}

function addConfig(program: Command, config: () => Option, terminal: Terminal): void {
  const load = () => import('./config.ts')
  const group = program.command('config').description('look at the configuration')
  group
    .command('show')
    .description('print it with its defaults, secrets masked')
    .addOption(config())
    .action(async (options: CommonOptions) => ends((await load()).showCommand(options, terminal)))
  group
    .command('validate')
    .description('say everything that is wrong with it')
    .addOption(config())
    .action(async (options: CommonOptions) => ends((await load()).validateCommand(options, terminal)))
  group
    .command('schema')
    .description('print the JSON Schema for editors')
    .action(async () => ends((await load()).schemaCommand(terminal)))
  group
    .command('import')
    .description('print a PicGo or PicList file as a configuration of this program')
    .argument('<file>', 'config.json or data.json')
    .action(async (file: string) => ends((await load()).importCommand(file, terminal)))
}
