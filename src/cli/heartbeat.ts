import type { Command } from 'commander'
import { glance } from '../config/load.ts'
import { type PortHolder, probeServer, urlOf } from '../server/port.ts'
import { findRunning } from '../server/running-server.ts'
import { configOption, endWith, parseServer } from './command.ts'
import type { CommonOptions, Terminal } from './terminal.ts'

interface HeartbeatOptions extends CommonOptions {
  /** URL of a server instead of the configured one. */
  server?: string
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('heartbeat')
    .description('check whether the server is up (health check): exit with 0 if it responds')
    .addOption(configOption())
    .option('--server <url>', 'URL of the server (default: the server of the configuration)', parseServer)
    .addHelpText(
      'after',
      `
Examples:
  upload-server heartbeat                    the server of the configuration
  upload-server heartbeat --server http://127.0.0.1:36677`,
    )
    .action((options: HeartbeatOptions) => endWith(terminal, heartbeat(options, terminal)))
}

/** `upload-server heartbeat`: returns 0 if the server responds, for container health checks and scripts. */
async function heartbeat(options: HeartbeatOptions, terminal: Terminal): Promise<number> {
  if (options.server === undefined) return heartbeatHere(options, terminal)
  const url = baseOf(options.server)
  return tell(`${url.origin}${url.pathname}`, await probeServer(url), terminal)
}

/** Also finds a server that listens on another port because the configured one was in use. */
async function heartbeatHere({ config: file }: HeartbeatOptions, terminal: Terminal): Promise<number> {
  const config = await glance({ ...terminal, file })
  const wanted = config.settings.server
  const holder = await probeServer(wanted)
  const elsewhere = holder.isAlive ? undefined : await findRunning(config)
  return elsewhere === undefined
    ? tell(urlOf(wanted), holder, terminal)
    : tell(elsewhere, { ...holder, isAlive: true }, terminal)
}

function tell(name: string, { isAlive, description }: PortHolder, terminal: Terminal): number {
  if (isAlive) terminal.print(`${name} is up`)
  else terminal.note(`${name} is not up: ${description}.`)
  return isAlive ? 0 : 1
}

/** The base URL of a server, also from the URL that clients use: `http://host/upload?key=…`. */
function baseOf(server: string): URL {
  const url = new URL(server)
  url.pathname = url.pathname.replace(/\/upload\/?$/, '')
  url.search = ''
  url.hash = ''
  return url
}
