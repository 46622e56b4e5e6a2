import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import { isObject, membersOf } from '../members.ts'
import { idOf } from '../uploader/destinations.ts'
import { differing, type RunningServer } from './index.ts'
import { watchFiles } from './watch-files.ts'

export interface ReloadDeps {
  /** Configuration with which the server was started. */
  readonly config: LoadedConfig
  /** Fingerprint of the files to watch when they were read. */
  readonly seen: string
  readonly server: RunningServer
  readonly logger: Logger
  /** Has the log mask further secrets. */
  learn(secrets: readonly string[]): void
  /** Reads the configuration as it is now. */
  load(): Promise<LoadedConfig>
}

/**
 * Watches the files of a configuration, unless that says otherwise, and has the server take what changes.
 *
 * @returns has everything read again now
 */
export function keepUpToDate(deps: ReloadDeps): () => void {
  let current = deps.config
  let isRunning = false
  let isWanted = false

  /** Runs one reload at a time. Requests that arrive during a reload cause exactly one more. */
  async function reload(): Promise<void> {
    isWanted = true
    if (isRunning) return
    isRunning = true
    while (isWanted) {
      isWanted = false
      current = await take(current, deps)
      watched.follow(filesToWatch(current))
    }
    isRunning = false
  }

  const watched = watchFiles(filesToWatch(current), deps.seen, () => void reload())
  return () => void reload()
}

/** None when changes are not to be looked for. */
export function filesToWatch({ settings, files }: LoadedConfig): readonly string[] {
  return settings.server.watch ? files : []
}

/** Names of the settings and destinations that differ. What they were and are stays out of the log: it may be a secret. */
function changesBetween(old: LoadedConfig, now: LoadedConfig): string[] {
  const sections = differing(old.settings, now.settings).filter(name => name !== 'providers')
  const namesIn = (section: string) => {
    const [before, after] = [old, now].map(({ settings }) => membersOf(settings)[section])
    const isSection = isObject(before) && isObject(after) && !Array.isArray(before) && !Array.isArray(after)
    return isSection ? differing(before, after).map(name => `${section}.${name}`) : [section]
  }
  const optionsById = ({ destinations }: LoadedConfig) =>
    Object.fromEntries(destinations.map(one => [idOf(one), [one.options, one.common]]))
  return [...sections.flatMap(namesIn), ...differing(optionsById(old), optionsById(now))]
}

/** @returns the configuration that holds from now on: the old one when the new one is broken, which the log explains */
async function take(old: LoadedConfig, { server, logger, learn, load }: ReloadDeps): Promise<LoadedConfig> {
  try {
    const config = await load()
    learn(config.secrets)
    const kept = await server.reload(config)
    const destinations = config.destinations.map(idOf)
    const changed = changesBetween(old, config)
    logger.info(
      { config: config.file ?? 'none', destinations, changed },
      `Configuration reloaded: ${changed.length > 0 ? `changed ${changed.join(', ')}` : 'nothing has changed'}`,
    )
    for (const name of kept)
      logger.warn({ setting: name }, `${name} has changed. Restart the server to apply it`)
    for (const note of config.notes.filter(one => !old.notes.includes(one))) logger.warn(note)
    return config
  } catch (error) {
    const problems = error instanceof ConfigError ? { problems: error.problems } : {}
    const reason = messageOf(error)
    server.refused()
    logger.error(problems, `Could not reload the configuration. The previous one stays in use. ${reason}`)
    return old
  }
}
