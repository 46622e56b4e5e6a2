import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, Response } from 'express'
import { expect, it, onTestFinished } from 'vitest'
import { createPayloads } from '../../src/payload/index.ts'
import { createSpool } from '../../src/payload/spool.ts'
import { readForm } from '../../src/routes/form.ts'
import { readBoundary } from '../../src/routes/multipart.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf } from '../helpers/form.ts'

it('a complete form was answered 408 when the disk took longer than bodyIdleMs', async () => {
  const spool = createSpool(join(await makeDirectory(), 'spool'))
  const slow = {
    ...spool,
    async create() {
      await sleep(200)
      return spool.create()
    },
  }
  const server = createServer(async (req, res) => {
    const boundary = readBoundary(req.headers['content-type']) ?? ''
    const read = readForm(req as Request, res as Response, boundary, {
      payloads: createPayloads(0),
      spool: slow,
      limits: { fileSize: 1e6, files: 9, jsonBody: 0, bodyIdleMs: 100 },
      underWay: [],
    })
    const told = read.then(
      ({ inputs }) => inputs.map(({ origin }) => origin).join(),
      error => error.message,
    )
    res.end(await told)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const answer = await fetch(url, { method: 'POST', body: formOf({ 'a.txt': 'one', 'b.txt': 'two' }) })
  expect(await answer.text()).toBe('a.txt,b.txt')
})
