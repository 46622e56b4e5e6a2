import { glance } from '../../config/load.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import { probeServer, urlOf } from '../../server/port.ts'
import { findRunning, placeOf } from '../../server/running-server.ts'
import type { Call } from '../define.ts'
import type { Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** `upload-server heartbeat`: returns 0 if the server responds, for container health checks and scripts. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const [check, state] = options.ready ? (['/ready', 'ready'] as const) : (['/heartbeat', 'up'] as const)
  const { url, holder } =
    options.server === undefined ? await probeHere() : await probeThere(new URL(options.server))
  if (holder.isAlive) terminal.print(`${url} is ${state}`)
  else terminal.note(`${url} is not ${state}: ${holder.description}.`)
  return holder.isAlive ? 0 : 1

  /** Also finds a server that listens on another port because the configured one was in use. */
  async function probeHere() {
    const config = await glance({ ...terminal, file: options.config })
    const url = urlOf(config.settings.server)
    const holder = await probeServer(config.settings.server, check)
    // A server that is not ready may have a database that hangs, which can't tell where another one listens.
    const isHere = holder.isAlive || (options.ready && (await probeServer(config.settings.server)).isAlive)
    const running = isHere ? url : await findRunning(config)
    if (running === undefined || running === url) return { url, holder }
    return { url: running, holder: await probeServer(placeOf(running), check) }
  }

  /** The URL may be the one that clients use: `http://host/upload?key=…`. */
  async function probeThere(server: URL) {
    server.pathname = server.pathname.replace(/\/upload\/?$/, '')
    server.search = server.hash = ''
    const holder = await probeServer(server, check, fromEnvironment(terminal.env))
    return { url: `${server.origin}${server.pathname}`, holder }
  }
}
