import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { HttpAgents } from '../../src/http/agents.ts'

/**
 * Agents that lead every connection to 127.0.0.1, whatever name it is for, so that names such as
 * `pictures.s3.localhost` and the vendors' own can be used.
 *
 * @param port leads to this port instead of the one that was asked for
 * @param ca certificate to trust; the name is checked against it as usual
 */
export function createLoopbackAgents({ port, ca }: { port?: number; ca?: string } = {}): HttpAgents {
  const httpAgent = new HttpAgent({ keepAlive: true })
  httpAgent.createConnection = options =>
    connectTcp({ host: '127.0.0.1', port: port ?? Number((options as { port?: number }).port) })
  const httpsAgent = new HttpsAgent({ keepAlive: true })
  httpsAgent.createConnection = options => {
    const asked = options as { port?: number; servername?: string; host?: string }
    const servername = asked.servername || asked.host || ''
    return connectTls({
      host: '127.0.0.1',
      port: port ?? Number(asked.port),
      ...(/^[\d.]+$/.test(servername) ? {} : { servername }),
      ...(ca === undefined ? {} : { ca }),
    })
  }
  return {
    get: async ({ protocol }) => ({ agent: protocol === 'https:' ? httpsAgent : httpAgent }),
    close() {
      httpAgent.destroy()
      httpsAgent.destroy()
    },
  }
}
