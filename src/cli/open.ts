import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { type OpenUploader, openUploader } from '../server/open-uploader.ts'
import { findBase } from '../server/running-server.ts'
import type { DatabaseUse } from '../store/database.ts'
import { oneLine, type Terminal } from './terminal.ts'

/** The option that names the configuration file. */
export interface ConfigOption {
  readonly config?: string
}

/** Whether `--destination`, a provider or the ID of a destination, means a destination. Undefined: all of them. */
export const isWithin = (id: string, destination: string | undefined) =>
  destination === undefined || id === destination || id.startsWith(`${destination}/`)

/** Loads the configuration of a command. Its secrets are masked from then on. */
export async function openConfig({ config: file }: ConfigOption, terminal: Terminal): Promise<LoadedConfig> {
  const config = await loadConfig({ ...terminal, file })
  terminal.learn(config.secrets)
  return config
}

/** The configuration and the uploader of a command. */
export interface Opened {
  readonly config: LoadedConfig
  readonly uploader: OpenUploader
}

/**
 * Runs `work` with an uploader, without a server and without a log, and closes it.
 *
 * @param warn receives the warnings of destinations. Default: prints them, except those of opening, which the server logs when it
 *   starts
 * @param use of the database. Default: `create`
 * @returns what `work` returns
 */
export async function withUploader<T>(
  options: ConfigOption,
  terminal: Terminal,
  { warn, use }: { warn?: (message: string) => void; use?: DatabaseUse },
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const config = await openConfig(options, terminal)
  const { env, mask } = terminal
  let isOpen = false
  const uploader = await openUploader(config, {
    ...{ mask, env, use },
    logger: { warn() {} },
    warn: warn ?? (message => isOpen && terminal.note(oneLine(message))),
    baseOf: destination => findBase(config, destination),
  })
  isOpen = true
  try {
    return await work({ config, uploader })
  } finally {
    await uploader.close()
  }
}
