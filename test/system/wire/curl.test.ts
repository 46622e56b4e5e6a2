import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { expectDescribed } from '../../helpers/contract.ts'
import { EARLY_REFUSALS } from '../../helpers/early-refusals.ts'
import { expectFailure, expectNoClipboard, expectStored } from '../../helpers/expect-answer.ts'
import type { Answer } from '../../helpers/form.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture, makePictures } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { startApp, type TestApp, type TestAppOptions } from '../../helpers/start-app.ts'

interface CurlAnswer extends Answer {
  /** The exchange as `--verbose` tells it. */
  verbose: string
  exitCode: number | null
}

/** The real program, without its configuration file. */
async function runCurl(args: string[], input?: string | Uint8Array): Promise<CurlAnswer> {
  const { stdout, stderr, exitCode } = await runProgram('curl', ['-q', '-sS', '-v', '-i', ...args], { input })
  // Interim answers come first, each with an empty line behind it.
  const [, head = '', body = ''] = /^(?:HTTP\/1.1 1.*?\r\n\r\n)*(.*?)\r\n\r\n(.*)$/s.exec(stdout) ?? []
  const [status = '', ...lines] = head.split('\r\n')
  const headers = new Headers(lines.map(line => line.split(/: ?(.*)/s, 2) as [string, string]))
  const answer = { status: Number(status.split(' ')[1]), headers, verbose: stderr, exitCode }
  const [, method = '', target = ''] = /^> (\S+) (\S+) HTTP/m.exec(stderr) ?? []
  expectDescribed({ method, target, ...answer, contentType: headers.get('content-type'), body })
  return { ...(body === '' ? ({} as Answer) : (JSON.parse(body) as Answer)), ...answer }
}

async function startWith(context: TestContext, options?: TestAppOptions): Promise<TestApp> {
  needs(context, 'curl', 'curl')
  return startApp(options)
}

async function writePicture(app: TestApp, name: string, bytes?: number) {
  const file = makePicture(bytes)
  const path = join(app.directory, name)
  await writeFile(path, file)
  return { file, path }
}

/** A path as -F wants it: in quotes, so that commas and semicolons are part of it. */
const quote = (path: string): string => `"${path.replace(/["\\]/g, '\\$&')}"`

describe('curl sends a form', () => {
  it.for(['file', 'files', 'files[]', 'list', 'image'])('with the field %s', async (field, context) => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    await expectStored(await runCurl(['-F', `${field}=@${path}`, `${app.url}/upload`]), [file])
  })

  it.for(['a"b.png', 'back\\slash".png', '图 片;type=x.png', '100%.png', '%41%22.png', "it's, ok.png"])(
    'with a file named %s',
    async (name, context) => {
      const app = await startWith(context)
      const { file, path } = await writePicture(app, name)
      const answer = await runCurl(['-F', `file=@${quote(path)}`, `${app.url}/upload`])
      await expectStored(answer, [file])
      // Quotes are the only thing that is decoded; the part behind a backslash is the last component.
      expect(answer.items[0]?.origin).toBe(name.replace('%22', '"').replace('back\\', ''))
    },
  )

  it('with several files in two fields', async context => {
    const app = await startWith(context)
    const one = await writePicture(app, '1.png')
    const two = await writePicture(app, '2.png')
    const fields = ['-F', `file=@${one.path}`, '-F', 'note=text', '-F', `files=@${two.path}`]
    await expectStored(await runCurl([...fields, `${app.url}/upload`]), [one.file, two.file])
  })

  it('from its standard input, under the name "-"', async context => {
    const app = await startWith(context)
    const file = makePicture()
    const answer = await runCurl(['-F', 'file=@-', `${app.url}/upload`], file)
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: '-', contentType: 'image/png' })
    expect(answer.items[0]?.fileName).toMatch(/\.png$/)
  })

  it('under a name that leads elsewhere, with a wrong type', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    const part = `file=@${path};type=text/html;filename=../../../evil.png`
    const answer = await runCurl(['-F', part, `${app.url}/upload`])
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: 'evil.png', contentType: 'image/png' })
  })

  it('with a form inside the form ("file=@a,b"): it is told how to send both', async context => {
    const app = await startWith(context)
    const one = await writePicture(app, '1.png')
    const two = await writePicture(app, '2.png')
    const answer = await runCurl(['-F', `file=@${one.path},${two.path}`, `${app.url}/upload`])
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain('part of its own')
  })

  it('with a picture and no name ("file=<a.png")', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    const answer = await runCurl(['-F', `file=<${path}`, `${app.url}/upload`])
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: '', contentType: 'image/png' })
    expect(answer.items[0]?.fileName).toMatch(/^file.*\.png$/)
  })

  it('whose only part is text ("file=<a.txt"): there is no file in it', async context => {
    const app = await startWith(context)
    const path = join(app.directory, 'a.txt')
    await writeFile(path, 'text')
    expectFailure(await runCurl(['-F', `file=<${path}`, `${app.url}/upload`]), 400, 'no_file')
  })

  it('to an address that ends in a slash, as a publisher for Obsidian does', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'tmp-1.png')
    const limits = ['--connect-timeout', '10', '--max-time', '40']
    await expectStored(await runCurl([...limits, '-F', `files=@${path}`, `${app.url}//upload`]), [file])
  })
})

describe('curl sends JSON', () => {
  it('with -d and no -H, labelled as a form in an address', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a b+c&d=1.png')
    const answer = await runCurl(['-d', JSON.stringify({ list: [path] }), `${app.url}/upload`])
    expect(answer.verbose).toContain('application/x-www-form-urlencoded')
    await expectStored(answer, [file])
  })

  it('from a file, with and without a type', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    const body = join(app.directory, 'body.json')
    await writeFile(body, `{\r\n  "list": [\r\n    ${JSON.stringify(path)}\r\n  ]\r\n}\r\n`)
    for (const args of [
      ['--data-binary', `@${body}`],
      ['-d', `@${body}`, '-H', 'Content-Type:'],
    ])
      await expectStored(await runCurl([...args, `${app.url}/upload`]), [file])
  })

  it.for<[string, string[]]>([
    ['-X POST alone', ['-X', 'POST']],
    ['a type and no body', ['-X', 'POST', '-H', 'Content-Type: application/json']],
    ['an empty body', ['-d', '']],
    ['an empty object', ['-d', '{}']],
  ])('or no input at all, with %s: the clipboard', async ([_what, args], context) => {
    const app = await startWith(context)
    await expectNoClipboard(runCurl([...args, `${app.url}/upload`]))
  })
})

describe('curl on the wire', () => {
  it('waits for "100 Continue" before more than a megabyte, and gets it', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'big.png', 3_000_000)
    const answer = await runCurl(['-F', `file=@${path}`, `${app.url}/upload`])
    expect(answer.verbose).toContain('> Expect: 100-continue')
    expect(answer.verbose).toContain('< HTTP/1.1 100 Continue')
    await expectStored(answer, [file])
  })

  it('sends no megabyte to a server that refuses its key', async context => {
    const config = { server: { key: 'k1' }, auth: { loopbackExempt: false } }
    const app = await startWith(context, { config })
    const { path } = await writePicture(app, 'big.png', 3_000_000)
    const answer = await runCurl(['-F', `file=@${path}`, `${app.url}/upload?key=wrong`])
    expectFailure(answer, 401, 'unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer.verbose).not.toContain('100 Continue')
    const failed = await runProgram('curl', ['-q', '-f', '-F', `file=@${path}`, `${app.url}/upload`])
    expect(failed.exitCode, '--fail notices it').toBe(22)
  })

  it.for([
    ['an offer of HTTP/2', '--http2', '> Upgrade: h2c'],
    ['chunks', '-HTransfer-Encoding: chunked', '> Transfer-Encoding: chunked'],
    ['HTTP/1.0', '--http1.0', ' HTTP/1.0\r'],
    ['no wish to be asked for the body', '-HExpect:', '> POST /upload HTTP/1.1'],
    ['an expectation nobody knows', '-HExpect: the-unexpected', '> Expect: the-unexpected'],
    ['compression of the answer', '--compressed', '> Accept-Encoding: '],
  ] as const)('may send %s', async ([_what, option, sent], context) => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'big.png', 1_500_000)
    const answer = await runCurl([option, '-F', `file=@${path}`, `${app.url}/upload`])
    expect(answer.verbose).toContain(sent)
    await expectStored(answer, [file])
  })

  it('keeps its connection after a success and after a failure', async context => {
    const app = await startWith(context)
    const { path } = await writePicture(app, 'a.png')
    const common = ['-sS', '-w', ' %{http_code} %{num_connects}\n', '-o', join(app.directory, 'answer.json')]
    const good = [...common, '-F', `file=@${path}`, `${app.url}/upload`]
    const bad = [...common, '-d', '{"list":["relative"]}', `${app.url}/upload`]
    const { stdout } = await runProgram('curl', ['-q', ...good, '--next', ...bad, '--next', ...good])
    expect(stdout.trim().split(/\s*\n\s*/)).toEqual(['200 1', '400 0', '200 0'])
  })

  it('sends letters beyond ASCII in an address as they are: it is told to encode them', async context => {
    const app = await startWith(context)
    const { path } = await writePicture(app, 'a.png')
    const answer = await runCurl(['-F', `file=@${path}`, `${app.url}/upload?configName=我的`])
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain('percent-encoded')
  })

  it.for(['/upload/', '/upload?filename=a.png'])('puts a file with -T to %s', async (target, context) => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    const answer = await runCurl(['-T', path, `${app.url}${target}`])
    await expectStored(answer, [file])
    expect(answer.items[0]).toMatchObject({ origin: 'a.png', contentType: 'image/png' })
  })

  it('posts a file as it is, with its type or its name', async context => {
    const app = await startWith(context)
    const { file, path } = await writePicture(app, 'a.png')
    const body = ['--data-binary', `@${path}`]
    const typed = await runCurl([...body, '-H', 'Content-Type: image/png', `${app.url}/upload`])
    await expectStored(typed, [file])
    const named = await runCurl([...body, `${app.url}/upload?filename=b.png`])
    await expectStored(named, [file])
    expect(named.items[0]?.origin).toBe('b.png')
  })
})

it('an agent skill asks for the heartbeat, sends with curl and prints the links', async context => {
  const app = await startWith(context)
  const alive = await runCurl([`${app.url}/heartbeat`])
  expect(alive).toMatchObject({ status: 200, success: true, result: 'alive' })
  const files = makePictures(2)
  const paths = files.map((_, index) => join(app.directory, `${index}.png`))
  await Promise.all(paths.map((path, index) => writeFile(path, files[index]!)))
  const body = JSON.stringify({ list: paths })
  const args = ['-X', 'POST', '-H', 'Content-Type: application/json', '-d', body]
  await expectStored(await runCurl([...args, `${app.url}/upload`]), files)
})

describe('an answer that comes before the body of 20 MB is sent can be read', () => {
  const body = Buffer.alloc(20 * 1024 * 1024, 'x')

  it.for(EARLY_REFUSALS)('by curl: %s', async ([, status, path, headers], context) => {
    const app = await startWith(context, { config: { server: { key: 'k3y-0f-the-server' } } })
    const fields = ['Expect:', ...headers].flatMap(header => ['-H', header])
    const args = ['-q', '-sS', '-w', '\n%{http_code}', ...fields, '--data-binary', '@-', app.url + path]
    const { stdout, stderr } = await runProgram('curl', args, { input: body })
    expect(stderr).toBe('')
    expect(stdout).toMatch(new RegExp(`^\\{"success":false.*\\n${status}$`, 's'))
  })
})
