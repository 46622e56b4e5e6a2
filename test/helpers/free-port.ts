import { once } from 'node:events'
import { createServer } from 'node:net'

/** Above 10080, the last of those that `fetch` and browsers refuse (WHATWG Fetch, "bad port"). */
const LOWEST = 10_081
/** Below the range from which the kernel takes ports of its own for outgoing connections. */
const HIGHEST = 32_767

/** The first of `count` ports in a row that nobody listens on now, for servers that cannot take port 0. */
export async function findFreePorts(count = 1, hosts: readonly string[] = ['127.0.0.1']): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const first = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST - count))
    const ports = Array.from({ length: count }, (_, i) => first + i)
    const checks = hosts.flatMap(host => ports.map(port => isFree(port, host)))
    if ((await Promise.all(checks)).every(Boolean)) return first
  }
  throw new Error(`no ${count} free ports in a row were found`)
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer()
  server.listen(port, host)
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    if (server.listening) await new Promise(resolve => server.close(resolve))
  }
}
