import { glance } from '../../config/load.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import { type Check, type PortHolder, probeServer, urlOf } from '../../server/port.ts'
import { findRunning, placeOf } from '../../server/running-server.ts'
import type { Call } from '../define.ts'
import type { CommonOptions, Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** `upload-server heartbeat`: returns 0 if the server responds, for container health checks and scripts. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const check = options.ready ? '/ready' : '/heartbeat'
  if (options.server === undefined) return heartbeatHere(check, options, terminal)
  const url = baseOf(options.server)
  return tell(
    check,
    `${url.origin}${url.pathname}`,
    await probeServer(url, check, fromEnvironment(terminal.env)),
    terminal,
  )
}

/** Also finds a server that listens on another port because the configured one was in use. */
async function heartbeatHere(check: Check, options: CommonOptions, terminal: Terminal): Promise<number> {
  const config = await glance({ ...terminal, file: options.config })
  const url = urlOf(config.settings.server)
  const holder = await probeServer(config.settings.server, check)
  const running = holder.isAlive ? url : await findRunning(config)
  if (running === undefined || running === url) return tell(check, url, holder, terminal)
  return tell(check, running, await probeServer(placeOf(running), check), terminal)
}

function tell(check: Check, name: string, { isAlive, description }: PortHolder, terminal: Terminal): number {
  const state = check === '/ready' ? 'ready' : 'up'
  if (isAlive) terminal.print(`${name} is ${state}`)
  else terminal.note(`${name} is not ${state}: ${description}.`)
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
