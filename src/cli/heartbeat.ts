import type { Command } from 'commander'
import { loadConfig } from '../config/load.ts'
import { askWhoIsThere, urlOf } from '../server/port.ts'
import { configOption, endWith, parseServer } from './command.ts'
import type { CommonOptions, Terminal } from './terminal.ts'

interface HeartbeatOptions extends CommonOptions {
  /** Address of a server, in place of the configured one. */
  server?: string
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('heartbeat')
    .description('exit with 0 when the server answers')
    .addOption(configOption())
    .option('--server <url>', 'address of the server; default: as configured', parseServer)
    .addHelpText(
      'after',
      `
Examples:
  upload-server heartbeat                    the server of the configuration
  upload-server heartbeat --server http://127.0.0.1:36677`,
    )
    .action((options: HeartbeatOptions) => endWith(terminal, heartbeat(options, terminal)))
}

/** `upload-server heartbeat`: 0 when the server answers, for container health checks and scripts. */
async function heartbeat(options: HeartbeatOptions, terminal: Terminal): Promise<number> {
  const endpoint = options.server
    ? baseOf(options.server)
    : (await loadConfig({ ...terminal, file: options.config })).settings.server
  const name = endpoint instanceof URL ? `${endpoint.origin}${endpoint.pathname}` : urlOf(endpoint)
  const { isAlive, description } = await askWhoIsThere(endpoint)
  if (isAlive) terminal.print(`${name} is alive`)
  else terminal.note(`${name} is not alive: ${description}.`)
  return isAlive ? 0 : 1
}

/** Takes the address that clients are given, too: `http://host/upload?key=…`. */
function baseOf(server: string): URL {
  const url = new URL(server)
  url.pathname = url.pathname.replace(/\/upload\/?$/, '')
  url.search = ''
  url.hash = ''
  return url
}
