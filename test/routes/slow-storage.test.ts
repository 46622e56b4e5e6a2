import { join } from 'node:path'
import type { Request, Response } from 'express'
import { expect, it, onTestFinished } from 'vitest'
import { createPayloads } from '../../src/payload/index.ts'
import { createSpool } from '../../src/payload/spool.ts'
import { readForm } from '../../src/routes/form.ts'
import { readBoundary } from '../../src/routes/multipart.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf } from '../helpers/form.ts'
import { listen } from '../helpers/listen.ts'

it('a complete form was answered 408 when the disk took longer than bodyIdleMs', async () => {
  const spool = createSpool(join(await makeDirectory(), 'spool'))
  let url = ''
  /** Another client begins a form, sends no more, and is answered: the time is over. */
  async function waitForIdle() {
    const body = new ReadableStream({ start: stream => stream.enqueue(Buffer.from('--b\r\n')) })
    const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
    const answer = await fetch(url, { method: 'POST', body, headers, duplex: 'half' } as RequestInit)
    expect(await answer.text()).toContain('limits.bodyIdle')
  }
  const slow = {
    ...spool,
    async create() {
      await waitForIdle()
      return spool.create()
    },
  }
  const server = await listen(async (req, res) => {
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
  onTestFinished(server.close)
  url = server.url
  const answer = await fetch(url, { method: 'POST', body: formOf({ 'a.txt': 'one', 'b.txt': 'two' }) })
  expect(await answer.text()).toBe('a.txt,b.txt')
})
