import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { download } from '../helpers/form.ts'
import { formBody, type RawPart, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const TYPE = 'Content-Type: multipart/form-data; boundary=b'
const plain = shareApp()
const part = (name: string): string => `Content-Disposition: form-data; name="file"; filename="${name}"`

describe('attack: a file is called', () => {
  it.each<[what: string, name: string]>([
    ['with a NUL', 'a\0.png'],
    ['with control characters', 'a\u0001\u001b[31m\u007f\u0085b.png'],
    ['with line ends', 'a\u000bb\u000cc.png'],
    ['with marks that turn its end around', 'photo\u202egnp.exe'],
    ['with what nobody sees', '\u200b\u2060\ufeffa.png'],
    ['by 10 000 characters', `${'x'.repeat(9996)}.png`],
    ['by 10 000 characters of which each takes 4 bytes', `${'😀'.repeat(3000)}.png`],
    ['..', '..'],
    ['.. and a path', '../../../../etc/cron.d/evil'],
    ['.. in the words of Windows', '..\\..\\evil.dll'],
    ['by an absolute path', '/etc/passwd'],
    ['like a hidden file', '.htaccess'],
    ['like a device', 'CON.png'],
    ['like another device', 'lpt1'],
    ['like a data stream', 'a.png::$DATA'],
    ['with encoded slashes', '..%2f..%2fevil.png'],
    ['with half a character', 'a\ud83d.png'],
    ['with a template', '{filename}{uuid}${HOME}.png'],
    ['with a query and a fragment', 'a?b#c&d=e.png'],
    ['with markup', '<img src=x onerror=alert(1)>.png'],
    ['only with dots', '.....'],
    ['only with blanks', '   '],
  ])('%s', async (_, name) => {
    const app = plain()
    const before = await app.files()
    const body = formBody('b', [[part(name), randomUUID()]])
    const answer = await sendUpload(app.url, { headers: [TYPE], body })
    expect(answer).toMatchObject({ status: 200, success: true })
    const [stored = '', ...others] = (await app.files()).filter(path => !before.includes(path))
    expect(others).toEqual([])
    expect(stored).toMatch(
      /^data\/upload-server\/files\/\d{4}\/\d{2}\/[^/\\<>:"|?*\p{Cc}\u200b-\u202e\u2060-\ufeff]+$/u,
    )
    expect(Buffer.byteLength(stored.split('/').at(-1)!)).toBeLessThanOrEqual(245)
    expect((await download(String(answer.result[0]))).toString()).toHaveLength(36)
    expect(app.rawLog()).not.toContain('\u001b')
  })
})

describe('attack: a form', () => {
  it('has 10 000 parts', async () => {
    const app = await startApp()
    const fields = Array.from(
      { length: 10_000 },
      (): RawPart => ['Content-Disposition: form-data; name="x"', 'y'],
    )
    const files = Array.from({ length: 10_000 }, (): RawPart => [part('a.txt'), 'y'])
    for (const parts of [fields, files]) {
      const answer = await sendUpload(app.url, { headers: [TYPE], body: formBody('b', parts) })
      expectFailure(answer, 413, 'too_large')
    }
    expect(await app.files()).toEqual([])
  })

  it('has part headers of 1 MB', async () => {
    const app = plain()
    for (const header of [
      part('a'.repeat(1024 * 1024)),
      `${part('a.txt')}\n${'X: y\n'.repeat(200_000)}X: z`,
    ]) {
      const answer = await sendUpload(app.url, { headers: [TYPE], body: formBody('b', [[header, 'y']]) })
      expectFailure(answer, 400, 'invalid_request')
    }
  })

  it.each([
    ['in a file', `--b\r\n${part('a.bin')}\r\n\r\n`],
    ['in a text field', '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n'],
    ['before its first boundary', ''],
    ['behind its last boundary', `--b\r\n${part('a.bin')}\r\n\r\nx\r\n--b--\r\n`],
  ])('never ends, %s', async (_, begin) => {
    const app = await startApp({ config: { limits: { files: 2, fileSize: '1KB' } } })
    const { hostname, port } = new URL(app.url)
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.write(`POST /upload HTTP/1.1\r\nHost: localhost\r\n${TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    if (begin) socket.write(`${begin.length.toString(16)}\r\n${begin}\r\n`)
    const chunk = `40000\r\n${'x'.repeat(0x40000)}\r\n`
    const flood = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
    }
    socket.on('drain', flood)
    flood()
    const [answer] = await once(socket, 'data')
    socket.destroy()
    expect(String(answer)).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":"too_large"/)
    expect(await app.files()).toEqual([])
  })
})

it('attack: somebody asks for a stored file and never reads it', async () => {
  const app = await startApp({ config: { limits: { bodyIdle: '300ms' } } })
  const body = formBody('b', [[part('a.bin'), Buffer.alloc(30 * 1024 * 1024, 'x')]])
  const answer = await sendUpload(app.url, { headers: [TYPE], body })
  const { hostname, port, pathname } = new URL(String(answer.result[0]))
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.pause()
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await expect.poll(() => app.log.some(line => line['msg'] === 'client disconnected')).toBe(true)
  socket.destroy()
})

it('attack: JSON as deep as it gets, and as long', async () => {
  const app = plain()
  const bodies = ['['.repeat(1_000_000), `{"list":${'['.repeat(100_000)}${']'.repeat(100_000)}}`]
  bodies.push(`{"list":[${'"/a",'.repeat(100_000)}"/a"]}`, `${'{"list":'.repeat(100_000)}`)
  for (const json of bodies) {
    const answer = await sendUpload(app.url, { body: json })
    expect([400, 413]).toContain(answer.status)
  }
})
