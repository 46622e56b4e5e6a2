import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A web server whose answers wait until they are let go, to keep uploads of its file under way. */
export interface Gate {
  /** Address of its file. */
  readonly url: string
  /** Until so many requests wait. */
  reached(count: number): Promise<void>
  /** Answers everything from now on with `the file`. */
  open(): void
}

export async function startGate(): Promise<Gate> {
  const waiting: ServerResponse[] = []
  let isOpen = false
  const server = createServer((_req, res) => {
    if (isOpen) res.end('the file')
    else waiting.push(res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.txt`,
    async reached(count) {
      while (waiting.length < count) await once(server, 'request')
    },
    open() {
      isOpen = true
      for (const res of waiting.splice(0)) res.end('the file')
    },
  }
}
