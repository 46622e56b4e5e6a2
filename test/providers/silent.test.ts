import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../../src/provider-tests/listen.ts'
import { ftp } from '../../src/providers/ftp/index.ts'
import { sftp } from '../../src/providers/sftp/index.ts'
import { objectOf } from '../helpers/provider-contract.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

describe.each([
  ['sftp', sftp, {}],
  ['ftp', ftp, { secure: 'none' }],
] as const)('%s at a server that accepts a connection and says nothing', (_, provider, more) => {
  /** A put that has connected. */
  async function beginPut() {
    const server = createServer()
    const options = { host: '127.0.0.1', port: await listen(server), username: 'u', password: 'p', ...more }
    const config = provider.config.parse({ ...options, urlPrefix: 'https://img.example.com' })
    const target = await provider.open(config as never, { name: 'Default', warn: () => {} })
    const abort = new AbortController()
    const accepted = once(server, 'connection')
    let error: unknown
    const put = target.put(objectOf('a.png', Buffer.of(1)), abort.signal).catch(reason => {
      error = reason
    })
    const [socket] = (await accepted) as [Socket]
    socket.on('error', () => {}).resume()
    onTestFinished(async () => {
      socket.destroy()
      server.close()
      await put
    })
    return { abort, target, closed: once(socket, 'close'), failure: () => error }
  }

  it('ends the login after its time limit', async () => {
    const { failure } = await beginPut()
    for (let seconds = 0; seconds < 100 && failure() === undefined; seconds++) {
      await vi.advanceTimersByTimeAsync(1000)
      await nextTurn()
    }
    expect(failure()).toMatchObject({ retryable: true, message: expect.stringContaining('respond in time') })
  })

  it('closes the connection when the put is aborted and the destination is closed', async () => {
    const { abort, target, closed } = await beginPut()
    abort.abort()
    const closing = target.close?.()
    await vi.advanceTimersByTimeAsync(5000)
    await Promise.all([closing, closed])
  })
})
