import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Bytes that the parser gets at once of a body whose length is not known. What follows that body may be requests, of which each
 * takes 10 KB.
 */
const CHUNKED_BYTES = 4096
export interface Connection {
  /** The request in progress: its body or its response is not complete. */
  current: Exchange | undefined
  /** Parses what has arrived after a request that is complete now. */
  parseNext(): void
}

interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

/**
 * Has Node parse a request only when the one before it is complete. Node would parse all that has arrived at once, and 64 KB can
 * be 2400 requests, which take 24 MB. The rest waits here, and nothing more is read until then.
 */
export function parseOneByOne(socket: Socket): Connection {
  /** Passes bytes to Node's parser. */
  const [parse] = socket.listeners('data')
  let rest: Buffer = Buffer.alloc(0)
  /** Bytes of the body of the request in progress that have not been parsed. */
  let bodyLeft = 0
  let isPaused = false

  /** How many bytes of `rest` may be parsed now. */
  function lengthOfNext(): number {
    const { current } = connection
    if (!current) return lengthOfHead(rest)
    if (current.req.complete) return 0
    return bodyLeft === Infinity ? CHUNKED_BYTES : bodyLeft
  }

  function parseRest(): void {
    while (rest.length > 0 && !socket.destroyed && !socket.writableEnded) {
      const slice = rest.subarray(0, lengthOfNext())
      if (slice.length === 0) {
        isPaused = true
        socket.pause()
        return
      }
      rest = rest.subarray(slice.length)
      const before = connection.current
      parse?.call(socket, slice)
      if (before === connection.current) bodyLeft -= slice.length
      else bodyLeft = lengthOfBody(connection.current?.req)
    }
    rest = rest.subarray(rest.length)
    if (isPaused) socket.resume()
    isPaused = false
  }

  const connection: Connection = {
    current: undefined,
    parseNext() {
      if (rest.length > 0) setImmediate(parseRest)
    },
  }
  if (!parse) return connection
  socket.removeListener('data', parse as () => void)
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    parseRest()
  })
  return connection
}

/** Number of bytes to the end of the headers of a request, or all bytes. */
function lengthOfHead(bytes: Buffer): number {
  const lengthTo = (end: string) => {
    const start = bytes.indexOf(end, 0, 'latin1')
    return start === -1 ? bytes.length : start + end.length
  }
  return Math.min(lengthTo('\n\r\n'), lengthTo('\n\n'))
}

/** Infinity if it is not known. */
function lengthOfBody(req: IncomingMessage | undefined): number {
  if (!req) return 0
  return req.headers['transfer-encoding'] === undefined
    ? Number(req.headers['content-length'] ?? 0)
    : Infinity
}
