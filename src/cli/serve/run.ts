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
import { exit, onServerSignal } from '../signals.ts'
import type { Terminal } from '../terminal.ts'
import { describeStart } from './banner.ts'
import type { flags } from './index.ts'

type Options = OptionsOf<typeof flags>

/** `upload-server [serve]`: runs until a stop signal. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  // Open keep-alive connections must not keep the process running.
  return exit(await serve(options, terminal))
}

async function serve(options: Options, terminal: Terminal): Promise<number> {
  // The handlers come first: a signal may arrive right after the first health check. Without them it would kill the
  // process, or be ignored if this is PID 1 of a container.
  const stop = createCanceller()
  let isReloadPending = false
  let reload = () => {
    isReloadPending = true
  }
  onServerSignal(
    () => (stop.signal.aborted ? process.exit(1) : stop.abort()),
    () => reload(),
  )
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
  const { url } = server
  if (!server.isOurs) {
    logger.info({ url }, `An upload server is already running at ${url}; no second server was started`)
    return 0
  }
  // A reload reads the same file again: if it was deleted, the server must not fall back to the embedded default.
  reload = keepUpToDate({ config, seen, server, logger, learn, load: () => load(config.file) })
  announce(config, server, logger, terminal)
  letHeapGrow()
  if (isReloadPending) reload()
  await aborted(stop.signal)
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
  const { url } = server
  const isBannerSeen = terminal.isOutputSeen && logger.isLevelEnabled('info')
  if (isBannerSeen) terminal.print(terminal.mask(describeStart(config, url)))
  else logger.info({ url, config: file ?? 'none' }, `Listening on ${url}`)
  const { host, port, key } = settings.server
  if (port !== 0 && !url.startsWith('unix:') && !url.endsWith(`:${port}`))
    logger.warn({ wanted: port, url }, `Port ${port} is used by another program; listening on ${url} instead`)
  const { keys, tokens, reverseProxy, anonymous } = settings.auth
  const isLocal = isLoopback(host)
  const isSignedIn = tokens.length > 0 || reverseProxy?.requireKey === false
  if (!isLocal && key === undefined && keys.length === 0 && !isSignedIn) {
    const clients = isSocketPath(host) ? 'all clients' : 'remote clients'
    logger.warn(
      anonymous
        ? 'Anyone who can reach this server can upload without a key (auth.anonymous)'
        : `No upload key is set: ${clients} are rejected. Set server.key, UPLOAD_SERVER_KEY or --key`,
    )
  }
  // A normal first start. The banner shows the folder.
  const embedded = embeddedNote(config.dataDirectory)
  if (!isBannerSeen && notes.includes(embedded)) logger.info(embedded)
  const risks = isLocal ? [] : findShortKeys(settings)
  for (const note of [...notes, ...risks, ...server.notes]) if (note !== embedded) logger.warn(note)
}
