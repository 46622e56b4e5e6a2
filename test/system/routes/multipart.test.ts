import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { readBoundary } from '../../../src/routes/multipart.ts'
import { type ReceivedFile, receive } from '../../helpers/mended-form.ts'
import { needs } from '../../helpers/needs.ts'

describe('PartMender with forms as clients write them:', () => {
  it('curl itself', async context => {
    needs(context, 'curl', 'curl')
    const received: ReceivedFile[] = []
    const server = createServer((request, response) => {
      const boundary = readBoundary(request.headers['content-type']) ?? ''
      receive(request, boundary, { maxParts: 9 }).then(
        files => response.end(String(received.push(...files))),
        error => response.writeHead(500).end(String(error)),
      )
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      const source = import.meta.filename
      const fields = ['file=@-', `files=@${source};filename=a"b.ts`, 'text=1', `list[]=@${source};type=x/y`]
      const run = promisify(execFile)('curl', ['-sS', ...fields.flatMap(field => ['-F', field]), url])
      run.child.stdin?.end('from standard input')
      expect((await run).stdout).toBe('3')
    } finally {
      server.close()
    }
    expect(received.map(({ fileName }) => fileName)).toEqual(['-', 'a"b.ts', 'multipart.test.ts'])
    expect(String(received[0]?.bytes)).toBe('from standard input')
    expect(String(received[2]?.bytes)).toContain('this very text')
  })
})
