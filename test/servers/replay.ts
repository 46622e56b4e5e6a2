import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const HOST = fileURLToPath(new URL('replay-host.mjs', import.meta.url))

/** A host that takes what a vendor documents and nothing else, in a process of its own: memory is measured in this one. */
export interface Replay {
  readonly port: number
  readonly url: string
  /** Lets it play a documented exchange, and gives the address below which it does. */
  replay(exchange: object): Promise<string>
  close(): Promise<void>
}

/** Needs Node alone. */
export async function startReplay(): Promise<Replay> {
  const child = fork(HOST)
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const url = `http://127.0.0.1:${port}`
  let exchanges = 0
  return {
    port,
    url,
    async replay(exchange) {
      const name = `e${++exchanges}`
      const taken = once(child, 'message')
      child.send({ name, exchange })
      await taken
      return `${url}/replay/${name}`
    },
    async close() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
