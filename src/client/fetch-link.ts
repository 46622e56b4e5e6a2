import { UploadError } from '../errors.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { discard, explainHost, guardedFetch } from '../http/guarded-fetch.ts'
import { fromEnvironment } from '../http/proxy/outgoing.ts'
import type { Context } from './context.ts'
import { readAtMost } from './read-at-most.ts'

/** Time limit of one file, milliseconds. */
const MOST_MS = 60_000

/**
 * Fetches the file of a link.
 *
 * @param link of this program, or from a list that others may have written
 * @returns undefined if there is none (404, 410)
 * @throws UploadError; the reason of the signal
 */
export type FetchLink = (link: string, mostBytes: number, signal: AbortSignal) => Promise<Buffer | undefined>

/**
 * @param server URL of the server that the user has named. It may have a private IP address, and links to it are fetched with
 *   the user name and password in it
 * @param hosts others that may have private IP addresses, `host:port`
 */
export function createFetch(
  { env }: Pick<Context, 'env'>,
  server: string | undefined,
  hosts: readonly string[],
): FetchLink {
  const outgoing = fromEnvironment(env)
  const own = server === undefined ? undefined : new URL(server)
  const privateHosts = [...hosts, ...(own ? [own.host] : [])]
  return async (link, mostBytes, outer) => {
    const url = new URL(link)
    const { host } = url
    if (url.origin === own?.origin && url.username === '')
      Object.assign(url, { username: own.username, password: own.password })
    const fail = (reason: string) => new UploadError('source_failed', `${host} ${reason}.`)
    const limit = beginTimeLimit(MOST_MS, outer, () =>
      fail(`did not send the file within ${MOST_MS / 1000} s`),
    )
    const { signal } = limit
    try {
      const response = await guardedFetch(url, { addresses: 'any', privateHosts, signal, outgoing })
      if (response.status !== 200) {
        discard(response)
        if (response.status === 404 || response.status === 410) return undefined
        throw fail(`returned status ${response.status}`)
      }
      const body = response.body as AsyncIterable<Buffer> | null // no encoding is set: no strings come
      const bytes = body && (await readAtMost(body, mostBytes))
      if (!bytes) throw fail(`sends more than ${mostBytes} bytes`)
      return bytes
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof UploadError)) throw explainHost(error, `${host} could not be read`)
      if (error.code !== 'source_forbidden') throw error
      throw fail('has a private IP address, and is not the server that you named')
    } finally {
      limit.end()
    }
  }
}
