import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { openUploader } from '../server/open-uploader.ts'
import { findBase } from '../server/running-server.ts'
import type { DatabaseUse } from '../store/database.ts'
import type { Uploader } from '../uploader/index.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

/** Loads the configuration of a command. Its secrets are masked from then on. */
export async function openConfig({ config: file }: CommonOptions, terminal: Terminal): Promise<LoadedConfig> {
  const config = await loadConfig({ ...terminal, file })
  terminal.learn(config.secrets)
  return config
}

/** The configuration and the uploader of a command. */
export interface Opened {
  readonly config: LoadedConfig
  readonly uploader: Uploader
}

/**
 * Opens an uploader for one command, without a server and without a log. The caller closes it.
 *
 * @param warn receives the warnings of destinations. Default: prints them on the terminal, except those of opening, which
 *   the server logs when it starts
 * @param use of the database. Default: `create`
 */
export async function openForCommand(
  options: CommonOptions,
  terminal: Terminal,
  { warn, use }: { warn?: (message: string) => void; use?: DatabaseUse } = {},
): Promise<Opened> {
  const config = await openConfig(options, terminal)
  const { env, mask } = terminal
  let isOpen = false
  const printWarning = (message: string) => isOpen && terminal.note(oneLine(message))
  const uploader = await openUploader(config, {
    ...{ mask, env, use },
    logger: { warn() {} },
    warn: warn ?? printWarning,
    baseOf: destination => findBase(config, destination),
  })
  isOpen = true
  return { config, uploader }
}
