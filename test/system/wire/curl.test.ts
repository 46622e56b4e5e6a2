import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { expectDescribed } from '../../helpers/contract.ts'
import { EARLY_REFUSALS } from '../../helpers/early-refusals.ts'
import { expectFailure, expectNoClipboard, expectStored } from '../../helpers/expect-answer.ts'
import type { Answer } from '../../helpers/form.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { shareApp } from '../../helpers/start-app.ts'

// The real program. What it writes, byte for byte, is in test/wire/clients.test.ts.

const plain = shareApp()
const keyed = shareApp({ config: { server: { key: 'k3y-0f-the-server' } } })

interface CurlAnswer extends Answer {
  /** The exchange as `--verbose` tells it. */
  verbose: string
}

/** Runs curl without its configuration file. */
async function runCurl(args: string[], input?: string | Uint8Array): Promise<CurlAnswer> {
  const { stdout, stderr } = await runProgram('curl', ['-q', '-sS', '-v', '-i', ...args], { input })
  // Interim answers come first, each with an empty line behind it.
  const [, head = '', body = ''] = /^(?:HTTP\/1.1 1.*?\r\n\r\n)*(.*?)\r\n\r\n(.*)$/s.exec(stdout) ?? []
  const [status = '', ...lines] = head.split('\r\n')
  const headers = new Headers(lines.map(line => line.split(/: ?(.*)/s, 2) as [string, string]))
  const answer = { status: Number(status.split(' ')[1]), headers, verbose: stderr }
  const [, method = '', target = ''] = /^> (\S+) (\S+) HTTP/m.exec(stderr) ?? []
  expectDescribed({ method, target, ...answer, contentType: headers.get('content-type'), body })
  return { ...(body === '' ? ({} as Answer) : (JSON.parse(body) as Answer)), ...answer }
}

async function writePicture(name: string, bytes?: number) {
  const file = makePicture(bytes)
  const path = join(plain().directory, name)
  await writeFile(path, file)
  return { file, path }
}

/** A path as -F wants it: in quotes, so that commas and semicolons are part of it. */
const quote = (path: string): string => `"${path.replace(/["\\]/g, '\\$&')}"`
const form = (path: string) => ['-F', `file=@${quote(path)}`]
const needsCurl = (context: TestContext) => needs(context, 'curl', 'curl')

const BIG = 1_500_000

/** The name of a picture, how it is sent, and what the answer has to say of it. */
it.for<[name: string, args: (path: string) => string[], target: string, item?: object, sent?: string]>([
  ['a"b.png', form, '/upload', { origin: 'a"b.png' }],
  // The part behind a backslash is the last component.
  ['back\\slash".png', form, '/upload', { origin: 'slash".png' }],
  ['图 片;type=x.png', form, '/upload', { origin: '图 片;type=x.png' }],
  // Quotes are the only thing that is decoded.
  ['%41%22.png', form, '//upload', { origin: '%41".png' }],
  [
    'a.png',
    path => ['-F', `file=@${path};type=text/html;filename=../../../evil.png`],
    '/upload',
    { origin: 'evil.png', contentType: 'image/png' },
  ],
  ['b.png', path => ['-F', `file=<${path}`], '/upload', { origin: '', contentType: 'image/png' }],
  ['c.png', path => ['-T', path], '/upload/', { origin: 'c.png' }],
  ['d.png', path => ['-T', path], '/upload?filename=d.png', { origin: 'd.png' }],
  ['e.png', path => ['--data-binary', `@${path}`, '-H', 'Content-Type: image/png'], '/upload'],
  ['f.png', path => ['--data-binary', `@${path}`], '/upload?filename=b.png', { origin: 'b.png' }],
  ['g&h=1.png', path => ['-d', JSON.stringify({ list: [path] })], '/upload', {}, 'x-www-form-urlencoded'],
  ['big.png', form, '/upload', {}, '< HTTP/1.1 100 Continue'],
  ['big.png', path => ['--http2', ...form(path)], '/upload', {}, '> Upgrade: h2c'],
  ['big.png', path => ['-HTransfer-Encoding: chunked', ...form(path)], '/upload', {}, '> Transfer-Encoding'],
  ['big.png', path => ['--http1.0', ...form(path)], '/upload', {}, ' HTTP/1.0\r'],
  ['big.png', path => ['-HExpect:', ...form(path)], '/upload'],
  ['big.png', path => ['-HExpect: the-unexpected', ...form(path)], '/upload', {}, '> Expect: the-unexpected'],
  ['big.png', path => ['--compressed', ...form(path)], '/upload', {}, '> Accept-Encoding: '],
])('curl sends %s by %s to %s', async ([name, args, target, item = {}, sent = ''], context) => {
  needsCurl(context)
  const { file, path } = await writePicture(name, name === 'big.png' ? BIG : undefined)
  const answer = await runCurl([...args(path), plain().url + target])
  await expectStored(answer, [file])
  expect(answer.items[0]).toMatchObject(item)
  expect(answer.verbose).toContain(sent)
})

it('curl sends several files in two fields, and its standard input under the name "-"', async context => {
  needsCurl(context)
  const one = await writePicture('1.png')
  const piped = makePicture()
  const fields = ['-F', `file=@${one.path}`, '-F', 'note=text', '-F', 'files=@-']
  const answer = await runCurl([...fields, `${plain().url}/upload`], piped)
  await expectStored(answer, [one.file, piped])
  expect(answer.items[1]).toMatchObject({ origin: '-', contentType: 'image/png' })
})

it.for<[what: string, args: (path: string) => string[], target: string, code: string, message: string]>([
  ['a form in the form', path => ['-F', `file=@${path},${path}`], '', 'invalid_request', 'part of its own'],
  ['letters beyond ASCII in the URL', form, '?configName=我的', 'invalid_request', 'percent-encoded'],
  ['a form without a file', () => ['-F', 'file=text'], '', 'no_file', ''],
])('curl sends %s, and is told so', async ([, args, query, code, message], context) => {
  needsCurl(context)
  const { path } = await writePicture('a.png')
  const answer = await runCurl([...args(path), `${plain().url}/upload${query}`])
  expectFailure(answer, 400, code)
  expect(answer.message).toContain(message)
})

it.for([[['-X', 'POST']], [['-X', 'POST', '-H', 'Content-Type: application/json']], [['-d', '{}']]])(
  'curl asks for the clipboard by %j',
  async ([args = []], context) => {
    needsCurl(context)
    expectNoClipboard(await runCurl([...args, `${plain().url}/upload`]))
  },
)

it('curl keeps its connection after a success and after a failure, and --fail notices one', async context => {
  needsCurl(context)
  const { path } = await writePicture('a.png')
  const url = `${plain().url}/upload`
  const common = [
    '-sS',
    '-w',
    ' %{http_code} %{num_connects}\n',
    '-o',
    join(plain().directory, 'answer.json'),
  ]
  const good = [...common, ...form(path), url]
  const bad = [...common, '-d', '{"list":["relative"]}', url]
  const { stdout } = await runProgram('curl', ['-q', ...good, '--next', ...bad, '--next', ...good])
  expect(stdout.trim().split(/\s*\n\s*/)).toEqual(['200 1', '400 0', '200 0'])
  expect((await runProgram('curl', ['-q', '-f', '-d', 'no JSON', url])).exitCode).toBe(22)
})

describe('an answer that comes before the body of 20 MB is sent can be read', () => {
  const body = Buffer.alloc(20 * 1024 * 1024, 'x')

  it.for(EARLY_REFUSALS)('by curl: %s', async ([, status, path, headers], context) => {
    needsCurl(context)
    const fields = ['Expect:', ...headers].flatMap(header => ['-H', header])
    const args = ['-q', '-sS', '-w', '\n%{http_code}', ...fields, '--data-binary', '@-', keyed().url + path]
    const { stdout, stderr } = await runProgram('curl', args, { input: body })
    expect(stderr).toBe('')
    expect(stdout).toMatch(new RegExp(`^\\{"success":false.*\\n${status}$`, 's'))
  })
})
