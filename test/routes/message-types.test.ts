import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterEach, expect, it } from 'vitest'
import { MESSAGE_TYPES, makeMessagesFor } from '../../src/routes/message-types.ts'

const seen: object[][] = []
let answer: express.Express | undefined
const server = createServer(MESSAGE_TYPES, (req, res) => {
  seen.push([Object.getPrototypeOf(req), Object.getPrototypeOf(res)])
  if (answer) answer(req, res)
  else res.end('none')
})

afterEach(() => server.close())

it('requests and answers come with the prototypes of the application that they are for, before Node 24', async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const ask = async () => (await fetch(url, { method: 'POST', body: 'body' })).text()

  expect(await ask()).toBe('none')
  const [first, second] = ['first', 'second'].map(name => {
    const app = express()
    app.post('/', express.text({ type: '*/*' }), (req, res) => void res.json([name, req.body, req.path]))
    return app
  }) as [express.Express, express.Express]
  for (const app of [first, second]) {
    makeMessagesFor(app)
    answer = app
    const name = app === first ? 'first' : 'second'
    expect(JSON.parse(await ask())).toEqual([name, 'body', '/'])
  }
  const own = [IncomingMessage.prototype, ServerResponse.prototype]
  const ofApps = [first, second].map(({ request, response }) => [request, response])
  const isBefore24 = Number.parseInt(process.versions.node, 10) < 24
  const wanted = [own, ...(isBefore24 ? ofApps : [own, own])]
  expect(seen.map((pair, i) => pair.map((one, j) => one === wanted[i]?.[j]))).toEqual(
    wanted.map(() => [true, true]),
  )
})
