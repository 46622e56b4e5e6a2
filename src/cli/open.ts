import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { createLog } from '../log.ts'
import type { Mask } from '../mask.ts'
import { openUploader } from '../server/open-uploader.ts'
import type { Uploader } from '../uploader/index.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

/** What a command works with. */
export interface Opened {
  readonly config: LoadedConfig
  readonly mask: Mask
  readonly uploader: Uploader
}

/**
 * An uploader for one command, without a server and without a log. Close it.
 *
 * @param warn hears what destinations say to the operator; default: the terminal, but for what is said of the
 *   configuration, which the server tells at its start
 */
export async function openForCommand(
  options: CommonOptions,
  terminal: Terminal,
  warn?: (message: string) => void,
): Promise<Opened> {
  const config = await loadConfig({ ...terminal, file: options.config })
  const { mask } = terminal
  terminal.learn(config.secrets)
  const logger = createLog({ level: 'silent', mask })
  let isOpen = false
  const say = (message: string) => isOpen && terminal.note(oneLine(mask(message)))
  const uploader = await openUploader(config, { mask, env: terminal.env, logger, warn: warn ?? say })
  isOpen = true
  return { config, mask, uploader }
}
