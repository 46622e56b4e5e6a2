import { isSocketPath } from '../../config/endpoint.ts'
import { noteUnused } from '../../config/file.ts'
import { embeddedNote, type Flags, type LoadedConfig, loadConfig } from '../../config/load.ts'
import { findShortKeys } from '../../config/risks.ts'
import { aborted, createCanceller } from '../../flow/cancellation.ts'
import { isLoopback } from '../../http/proxy/no-proxy.ts'
import { createLog, type Logger } from '../../log.ts'
import { type RunningServer, startServer } from '../../server/index.ts'
import { PortTakenError } from '../../server/port.ts'
import { filesToWatch, keepUpToDate } from '../../server/reload.ts'
import { letHeapGrow } from '../../server/v8-settings.ts'
import { fingerprint } from '../../server/watch-files.ts'
import type { Call, OptionsOf } from '../define.ts'
import { isHangup, realSignals, type Signals } from '../signals.ts'
import type { Styled, Terminal } from '../terminal.ts'
import { describeStart } from './banner.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/** `upload-server [serve]`: runs until a stop signal. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const code = await serve(options, terminal, realSignals())
  if (isHangup()) process.removeAllListeners('SIGHUP').kill(process.pid, 'SIGHUP')
  // Open keep-alive connections must not keep the process running.
  return process.exit(code)
}

async function serve(options: Options, terminal: Terminal, signals: Signals): Promise<number> {
  // The handlers come first: a signal may arrive right after the first health check. Without them it would kill the
  // process, or be ignored if this is PID 1 of a container.
  const stop = createCanceller()
  signals.onStop(() => (stop.signal.aborted ? signals.exit(1) : stop.abort()))
  let reload = () => {
    isReloadPending = true
  }
  let isReloadPending = false
  signals.onReload(() => reload())
  const load = (file: string | undefined) => loadConfig({ ...terminal, file, flags: toFlags(options) })
  noteUnused({ ...terminal, file: options.config }, terminal.note)
  const config = await load(options.config)
  const seen = fingerprint(filesToWatch(config))
  const { mask, learn } = terminal
  learn(config.secrets)
  const logger = createLog({ level: config.settings.log.level, mask })
  let server: RunningServer
  try {
    server = await startServer(config, { logger, mask, env: terminal.env })
  } catch (error) {
    if (!(error instanceof PortTakenError)) throw error
    logger.fatal(error.message)
    return 1
  }
  if (!server.isOurs) {
    logger.info(
      { url: server.url },
      `An upload server is already running at ${server.url}; no second server was started`,
    )
    return 0
  }
  // A reload reads the same file again: if it was deleted, the server must not fall back to the embedded default.
  reload = keepUpToDate({ config, seen, server, logger, learn, load: () => load(config.file) })
  announce(config, server, logger, terminal)
  letHeapGrow()
  if (isReloadPending) reload()
  return untilStopped(server, logger, stop.signal)
}

function toFlags(options: Options): Flags {
  const { host, port, key, strictPort, allowAnonymous, logLevel, watch } = options
  return {
    server: { host, port, key, strictPort, ...(watch === false && { watch }) },
    auth: { anonymous: allowAnonymous },
    log: { level: logLevel },
  }
}

/** Prints the banner, or logs the URL, then logs warnings about the configuration. */
function announce(config: LoadedConfig, server: RunningServer, logger: Logger, terminal: Terminal): void {
  const { settings, file, notes } = config
  const isBannerSeen = terminal.isOutputSeen && logger.isLevelEnabled('info')
  if (isBannerSeen) terminal.printParts(describeStart(config, server.url).map(part => masked(part, terminal)))
  else logger.info({ url: server.url, config: file ?? 'none' }, `Listening on ${server.url}`)
  const { host, port, key } = settings.server
  if (port !== 0 && !server.url.startsWith('unix:') && !server.url.endsWith(`:${port}`)) {
    logger.warn(
      { wanted: port, url: server.url },
      `Port ${port} is used by another program; listening on ${server.url} instead`,
    )
  }
  const { keys, tokens, reverseProxy } = settings.auth
  const isSignedIn = tokens.length > 0 || reverseProxy?.requireKey === false
  if (!isLoopback(host) && key === undefined && keys.length === 0 && !isSignedIn) {
    logger.warn(
      settings.auth.anonymous
        ? 'Anyone who can reach this server can upload without a key (auth.anonymous)'
        : `No upload key is set: ${isSocketPath(host) ? 'all clients' : 'remote clients'} are rejected. Set server.key, UPLOAD_SERVER_KEY or --key`,
    )
  }
  // A normal first start. The banner shows the folder.
  const embedded = embeddedNote(config.dataDirectory)
  if (!isBannerSeen && notes.includes(embedded)) logger.info(embedded)
  const risks = isLoopback(host) ? [] : findShortKeys(settings)
  for (const note of [...notes, ...risks, ...server.notes]) if (note !== embedded) logger.warn(note)
}

function masked(part: Styled, { mask }: Terminal): Styled {
  return typeof part === 'string' ? mask(part) : { ...part, text: mask(part.text) }
}

/** @returns the exit code */
async function untilStopped(server: RunningServer, logger: Logger, stop: AbortSignal): Promise<number> {
  await aborted(stop)
  logger.info('Shutting down gracefully: waiting for uploads in progress')
  try {
    const finished = await server.stop()
    if (finished) logger.info('Stopped')
    else logger.error('Stopped; uploads still in progress after shutdown.grace were aborted')
    return finished ? 0 : 1
  } catch (error) {
    logger.error({ err: error }, 'Stopped after an error during shutdown')
    return 1
  }
}
