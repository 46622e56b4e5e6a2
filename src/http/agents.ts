import { readFile } from 'node:fs/promises'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Socket } from 'node:net'
import { systemCode, UploadError } from '../errors.ts'

/** A connection that takes longer to be made is given up. */
const CONNECT_TIMEOUT_MS = 10_000

export interface AgentOptions {
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
  /** A connection on which nothing happens for so long is given up; 0 for never. */
  readonly idleTimeoutMs: number
}

/** Connections that are kept open between requests. */
export interface HttpAgents {
  /**
   * @throws UploadError `delivery_failed`, whose message is the end of a sentence, when the certificate file can't be read,
   *   which is done at first use
   */
  get(url: URL): Promise<HttpAgent>
  close(): void
}

export function createHttpAgents({ caFile, insecureTls, idleTimeoutMs }: AgentOptions): HttpAgents {
  const endSilence = createSilenceEnder(idleTimeoutMs)
  const plain = endSilence(new HttpAgent({ keepAlive: true, timeout: idleTimeoutMs }))
  let secure: Promise<HttpsAgent> | undefined

  async function makeSecure(): Promise<HttpsAgent> {
    const options = { keepAlive: true, timeout: idleTimeoutMs, rejectUnauthorized: !insecureTls }
    if (caFile === undefined) return endSilence(new HttpsAgent(options))
    const { createSecureContext, rootCertificates } = await import('node:tls')
    const own = await readFile(caFile, 'utf8').catch((cause: unknown) => {
      secure = undefined
      throw new UploadError('delivery_failed', `"caFile" cannot be read (${systemCode(cause)})`, { cause })
    })
    // Once for all connections: reading the usual certificates takes some 30 ms.
    const secureContext = createSecureContext({ ca: [...rootCertificates, own] })
    return endSilence(new HttpsAgent({ ...options, secureContext }))
  }

  return {
    async get({ protocol }) {
      if (protocol !== 'https:') return plain
      secure ??= makeSecure()
      return secure
    },
    close() {
      plain.destroy()
      void secure?.then(
        agent => agent.destroy(),
        () => {},
      )
    },
  }
}

/**
 * Ends connections that take too long to be made, or on which nothing happens. Node only tells of such silence, so a server
 * that never answers would keep them open.
 */
function createSilenceEnder(idleTimeoutMs: number) {
  return <A extends HttpAgent>(agent: A): A => {
    const connect = agent.createConnection.bind(agent)
    agent.createConnection = (options, done) => {
      const socket = connect(options, done)
      if (!(socket instanceof Socket)) return socket
      const slow = setTimeout(() => socket.destroy(timedOut()), CONNECT_TIMEOUT_MS)
      for (const event of ['connect', 'close']) socket.once(event, () => clearTimeout(slow))
      socket.on('timeout', () => {
        // While a connection is unused the agent sets the time its server has named, and leaves it at that afterwards.
        if (socket.timeout !== idleTimeoutMs) return void socket.setTimeout(idleTimeoutMs)
        socket.destroy(timedOut())
      })
      return socket
    }
    return agent
  }
}

function timedOut(): Error {
  return Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
}
