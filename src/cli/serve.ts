import { type Command, InvalidArgumentError } from 'commander'
import { isLoopbackHost, isSocketPath } from '../config/endpoint.ts'
import { suggest } from '../config/issues.ts'
import { embeddedNote, type Flags, type LoadedConfig, loadConfig } from '../config/load.ts'
import { createLog, type Logger } from '../log.ts'
import { type RunningServer, startServer } from '../server/index.ts'
import { PortTakenError } from '../server/port.ts'
import { describeStart } from './banner.ts'
import { configOption } from './command.ts'
import { filesToWatch, keepUpToDate } from './reload.ts'
import { isHangup, realSignals, type Signals } from './signals.ts'
import type { CommonOptions, Part, Terminal } from './terminal.ts'
import { fingerprint } from './watch-files.ts'

interface ServeOptions extends CommonOptions {
  port?: number
  host?: string
  key?: string
  strictPort?: boolean
  workers?: number | 'auto'
  allowAnonymous?: boolean
  logLevel?: string
  /** False: --no-watch. */
  watch?: boolean
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('serve', { isDefault: true })
    .allowExcessArguments() // a misspelt command ends up here
    .description('start the server (may be left out)')
    .option('-p, --port <port>', 'port to listen on; 0 takes any free one (default: 36677)', parsePort)
    .option('--host <host>', 'address to listen on, or the path of a unix socket (default: 127.0.0.1)')
    .addOption(configOption())
    .option(
      '-k, --key <key>',
      'upload key for remote callers; UPLOAD_SERVER_KEY keeps it out of the process list',
    )
    .option('--strict-port', 'fail when the port is taken')
    .option('--workers <n>', 'processes that share the work, or "auto" (default: 1)', parseWorkers)
    .option('--allow-anonymous', 'let anybody upload without a key')
    .option('--log-level <level>', 'least important level that is logged (default: info)')
    .option('--no-watch', 'take a changed configuration at SIGHUP only')
    .addHelpText(
      'after',
      `
Examples:
  upload-server --port 8080
  upload-server --config /etc/upload-server/config.json --strict-port
  upload-server --workers 2                  on two cores

SIGTERM lets running uploads finish, SIGHUP has the configuration read again.`,
    )
    .action(async (options: ServeOptions, command: Command) => {
      const [stray] = command.args
      if (stray !== undefined) command.error(describeStray(stray, program))
      // Sockets that clients keep open must not keep the process.
      const code = await serve(options, terminal, realSignals())
      if (isHangup()) process.removeAllListeners('SIGHUP').kill(process.pid, 'SIGHUP')
      process.exit(code)
    })
}

function parsePort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('A port is a number from 0 to 65535.')
  return Number(text)
}

function parseWorkers(text: string): number | 'auto' {
  if (text === 'auto') return text
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError('It is a number from 1 on, or "auto".')
  return Number(text)
}

function describeStray(stray: string, program: Command): string {
  const shown = program.createHelp().visibleCommands(program)
  const names = shown.map(one => one.name()).filter(name => name !== 'help')
  return `error: unknown command '${stray}'${suggest(stray, names)}`
}

/** `upload-server [serve]`: runs until it is told to stop. */
async function serve(options: ServeOptions, terminal: Terminal, signals: Signals): Promise<number> {
  const load = (file = options.config) => loadConfig({ ...terminal, file, flags: toFlags(options) })
  const config = await load()
  const seen = fingerprint(filesToWatch(config))
  const { mask, learn } = terminal
  learn(config.secrets)
  const logger = createLog({ level: config.settings.log.level, mask })
  // From before the first heartbeat on: whoever waits for that one may send the signal, which else ends the process.
  let reload = () => {
    reloadIsWanted = true
  }
  let reloadIsWanted = false
  signals.onReload(() => reload())
  let server: RunningServer
  try {
    const start =
      config.settings.server.workers === 1
        ? startServer
        : (await import('../workers/primary.ts')).startWorkers
    server = await start(config, { logger, mask, env: terminal.env })
  } catch (error) {
    if (!(error instanceof PortTakenError)) throw error
    logger.fatal(error.message)
    return 1
  }
  if (!server.isOurs) {
    logger.info(
      { url: server.url },
      `An upload server of this kind is already running at ${server.url}; nothing was started`,
    )
    return 0
  }
  // Whoever waits for the first line of the log may stop the server as soon as it is there.
  const stopped = untilStopped(server, logger, signals)
  // A file that has gone must not become the embedded default.
  const reread = () => load(config.file)
  reload = keepUpToDate({ config, seen, server, logger, learn, load: reread })
  announce(config, server, logger, terminal)
  if (reloadIsWanted) reload()
  return stopped
}

function toFlags(options: ServeOptions): Flags {
  const { host, port, key, strictPort, workers, allowAnonymous, logLevel, watch } = options
  return {
    server: { host, port, key, strictPort, workers, ...(watch === false && { watch }) },
    auth: { anonymous: allowAnonymous },
    log: { level: logLevel },
  }
}

/** The log, or what a person sees, begins with the real address; what an operator should know follows. */
function announce(config: LoadedConfig, server: RunningServer, logger: Logger, terminal: Terminal): void {
  const { settings, file, notes } = config
  const isBannerSeen = terminal.isOutputSeen && logger.isLevelEnabled('info')
  if (isBannerSeen) terminal.printParts(describeStart(config, server.url).map(part => masked(part, terminal)))
  else
    logger.info({ url: server.url, config: file ?? 'none, embedded default' }, `Listening on ${server.url}`)
  const { host, port, key } = settings.server
  if (port !== 0 && !server.url.startsWith('unix:') && !server.url.endsWith(`:${port}`)) {
    logger.warn(
      { wanted: port, url: server.url },
      `Port ${port} is taken by something else; listening on ${server.url} instead`,
    )
  }
  if (!isLoopbackHost(host) && key === undefined && settings.auth.keys.length === 0) {
    logger.warn(
      settings.auth.anonymous
        ? 'Anybody who reaches this address may upload (auth.anonymous)'
        : `There is no upload key: ${isSocketPath(host) ? 'all callers' : 'callers from other machines'} are refused. Set server.key, UPLOAD_SERVER_KEY or --key`,
    )
  }
  const told = isBannerSeen ? embeddedNote(config.dataDirectory) : undefined
  for (const note of [...notes, ...server.notes]) if (note !== told) logger.warn(note)
}

function masked(part: Part, { mask }: Terminal): Part {
  return typeof part === 'string' ? mask(part) : { ...part, text: mask(part.text) }
}

function untilStopped(server: RunningServer, logger: Logger, signals: Signals): Promise<number> {
  return new Promise(resolve => {
    let asked = false
    server.failed?.then(async reason => {
      if (asked) return
      asked = true
      logger.fatal(reason)
      await server.stop()
      resolve(1)
    })
    signals.onStop(() => {
      if (asked) {
        signals.exit(1)
        return
      }
      asked = true
      logger.info('Stopping: running uploads are finished first')
      server.stop().then(
        finished => {
          if (finished) logger.info('Stopped')
          else logger.error('Stopped; uploads that took longer than shutdown.graceMs were cut')
          resolve(finished ? 0 : 1)
        },
        error => {
          logger.error({ err: error }, 'Stopped, but not cleanly')
          resolve(1)
        },
      )
    })
  })
}
