import { loadConfig } from '../config/load.ts'
import { askWhoIsThere, urlOf } from '../server/port.ts'
import type { CommonOptions, Terminal } from './terminal.ts'

export interface HeartbeatOptions extends CommonOptions {
  /** Address of a server, in place of the configured one. */
  server?: string
}

/** `upload-server heartbeat`: 0 when the server answers, for container health checks and scripts. */
export async function heartbeat(options: HeartbeatOptions, terminal: Terminal): Promise<number> {
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
