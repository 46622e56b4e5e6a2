import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../helpers/needs.ts'
import { runProgram } from '../helpers/run-program.ts'
import { runServer, type SpawnedServer } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'

const MB = 1024 * 1024
const KEY = 'k3y-0f-the-server'
const FORM_TYPE = 'Content-Type: multipart/form-data; boundary=b'

/** Clients of a server of their own that never finish their headers. They begin first, since 20 seconds have to pass. */
const dribblers: { server?: SpawnedServer; directory: string; answers: Promise<string>[] } = {
  directory: mkdtempSync(join(tmpdir(), 'upload-server-test-')),
  answers: [],
}

beforeAll(async () => {
  dribblers.server = runServer(['--port', '0'], dribblers.directory)
  const { hostname, port } = new URL(await dribblers.server.url)
  dribblers.answers = ['', 'POST /upload HTTP/1.1\r\nHost: localhost\r\nX-'].map(sent => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write(sent)
    return text(socket)
  })
})

afterAll(async () => {
  dribblers.server?.process.kill('SIGKILL')
  await dribblers.server?.exit
  rmSync(dribblers.directory, { recursive: true })
})

describe('an answer that comes before the body of 20 MB is sent can be read', () => {
  const body = Buffer.alloc(20 * MB, 'x')
  const cases: [string, number, string[]][] = [
    ['without the key', 401, ['X-Forwarded-For: 203.0.113.9', FORM_TYPE]],
    ['to a destination that is unknown', 400, [FORM_TYPE]],
    ['with an encoding', 400, [FORM_TYPE, 'Content-Encoding: gzip']],
    ['as a form that is none', 400, ['Content-Type: multipart/form-data; boundary=c']],
    ['as too much JSON', 413, []],
  ]
  const target = (status: number, headers: string[]) =>
    status === 400 && headers.length === 1 && headers[0] === FORM_TYPE ? '/upload?picbed=nowhere' : '/upload'

  it.for(cases)('by curl: %s', async ([, status, headers], context) => {
    needs(context, 'curl', 'curl')
    const app = await startApp({ config: { server: { key: KEY } } })
    const fields = ['Expect:', ...headers].flatMap(header => ['-H', header])
    const args = [
      '-q',
      '-sS',
      '-w',
      '\n%{http_code}',
      ...fields,
      '--data-binary',
      '@-',
      app.url + target(status, headers),
    ]
    const { stdout, stderr } = await runProgram('curl', args, { input: body })
    expect(stderr).toBe('')
    expect(stdout).toMatch(new RegExp(`^\\{"success":false.*\\n${status}$`, 's'))
  })
})
